"""VictoriaMetrics as a peer: the line protocol over HTTP, as durable as it comes (not synced).

Needs its program: `VICTORIA_METRICS`, or `victoria-metrics` on the path. It is a Go module:

    go mod init peer && go get github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics
    go build github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 60.0


def program() -> str | None:
    return os.environ.get("VICTORIA_METRICS") or shutil.which("victoria-metrics")


@contextmanager
def running(folder: Path, port: int) -> Iterator[subprocess.Popen]:
    """A server that keeps what is older than a month as well."""
    folder.mkdir(parents=True)
    options = [f"-storageDataPath={folder / 'data'}", f"-httpListenAddr=127.0.0.1:{port}"]
    with Path(f"{folder}.log").open("wb") as log:
        command = [program(), *options, "-retentionPeriod=100y"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready(port):
            assert time.monotonic() < deadline, "VictoriaMetrics did not start"
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(60)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def values_stored(port: int) -> int:
    """Values that it has taken in; a row of five fields has five."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    name = "vm_rows_added_to_storage_total "
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def flush(port: int) -> None:
    """Has what waits in memory searchable and on disk."""
    url = f"http://127.0.0.1:{port}/internal/force_flush"
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()
