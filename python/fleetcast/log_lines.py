"""Lines of the log that are written without a logger: the access log, and audit lines repeated."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.engine import name_process, tell_left_out
from fleetcast.engine import write_served as _write_served

if TYPE_CHECKING:
    from collections.abc import Mapping

_STDERR = 2
encode_line = json.JSONEncoder(separators=(",", ":"), default=str).encode

_process = ""


def begin_log(process: str) -> None:
    """Names `process` in each line, and makes the process report lines left out when it ends.

    A process that is forked from this process does the same.
    """
    global _process  # noqa: PLW0603 - set once, by the process itself
    _process = process
    name_process(process)
    atexit.register(tell_left_out)


def process_name() -> str:
    """The name of this process in its lines."""
    return _process


class Served(NamedTuple):
    """A line of the access log: a request that has its answer."""

    request_id: str
    method: str
    route: str
    status: int | str
    error: str | None
    tenant: str | None
    key_id: str | None
    client: str
    seconds: float
    bytes_in: int
    bytes_out: int
    process: str


def write_served(served: Served) -> None:
    """Writes one line of the access log.

    The lines of a client whose requests are refused, or need no key, are bounded.
    """
    _write_served(*served)


def write_line(document: Mapping[str, object]) -> None:
    """Writes one line as it is."""
    # A single system call writes the line, so lines of several processes stay whole.
    with contextlib.suppress(OSError):
        os.write(_STDERR, f"{encode_line(document)}\n".encode())


def timestamp() -> str:
    """The present instant as log lines write it. Example: `2026-01-02T03:04:05.000006Z`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
