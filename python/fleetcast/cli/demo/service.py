"""The service of a demo: a real `fleetcast serve` on free ports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_STOP_SECONDS = 60.0
_LINES_SHOWN = 20
_OPTIONS = ("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--admin", "127.0.0.1:0")
_UNLIMITED = ("--set", "limits.requests_per_minute=0")


def show_end(log: Path) -> None:
    """Prints the last lines of the service's log, which the demo removes at its end."""
    last = log.read_text(errors="replace").splitlines()[-_LINES_SHOWN:]
    click.echo("\n".join(last), err=True)


@contextmanager
def running_service(
    data: Path, log: Path
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str | None]]]:
    """Starts the service, gives its process and its ready line, and stops it at the end.

    The service logs into the file `log`. Raises `OperatorError` if the service does not become
    ready.
    """
    # The service has its own process group, so that Ctrl-C reaches only the demo. The demo then
    # stops the service in order.
    with log.open("wb") as logged:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "fleetcast", "serve", "--data", data, *_OPTIONS, *_UNLIMITED],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=logged,
            env={name: value for name, value in os.environ.items() if "FLEETCAST_" not in name},
            process_group=0,
            text=True,
        )
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        line = process.stdout.readline()
        if not line:
            show_end(log)
            message = "the service did not start: see above"
            raise OperatorError(message)
        yield process, json.loads(line)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
