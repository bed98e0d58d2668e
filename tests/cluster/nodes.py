"""Nodes of one installation, each with a data directory and a service of its own."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.making import MASTER_KEY_FILE, make_data_directory
from tests.service.service import ENVIRONMENT, shared_store, start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.service.service import Service

ENGINE = Path(__file__).with_name("start-engine.sh")
ADMIN = ("--admin", "127.0.0.1:0")


def engine(*command: str) -> str:
    """Does something to a server of the run, such as `kill 1`, or asks something."""
    work = os.environ["ENGINE_WORK"]
    run = subprocess.run([ENGINE, work, *command], check=True, stdout=subprocess.PIPE, text=True)
    return run.stdout.strip()


def servers() -> list[str]:
    """Numbers of the servers of the run."""
    count = int((Path(os.environ["ENGINE_WORK"]) / "nodes").read_text())
    return [str(number) for number in range(1, count + 1)]


def make_nodes(folder: Path, count: int) -> list[Path]:
    """Data directories of nodes, of which the second and others join the first."""
    store, nodes = shared_store(), [folder / f"node-{number}" for number in range(count)]
    for node in nodes:
        key = None if node is nodes[0] else nodes[0] / MASTER_KEY_FILE
        is_new = make_data_directory(
            DataDirectory(node), ENVIRONMENT, os.environ, store=store, master_key_file=key
        )
        assert is_new == (node is nodes[0])
    return nodes


@contextmanager
def serving(nodes: list[Path], *options: str) -> Iterator[list[Service]]:
    """The services of nodes."""
    services: list[Service] = []
    try:
        services += [start(node, "", *ADMIN, *options) for node in nodes]
        yield services
    finally:
        for service in services:
            service.end()
