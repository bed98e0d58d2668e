"""Audit log of the command line: `audit.log` in the data directory, JSON, one line per change.

The output of a command is gone with its terminal, so its changes are written to a file. A running
service repeats each new line in its own log.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from fleetcast.log_lines import timestamp, write_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_CHUNK_BYTES = 1 << 20


def audit_line(event: str, details: Mapping[str, object]) -> bytes:
    """Returns one line of JSON about a change, with the user who runs this process."""
    document = {
        **details,
        "audit": True,
        "process": "cli",
        "user_id": os.getuid(),
        "level": "info",
        "logger": "fleetcast.audit",
        "timestamp": timestamp(),
        "event": event,
    }
    return json.dumps(document).encode() + b"\n"


def record(path: Path, event: str, **details: object) -> None:
    """Adds a line to the file. If that fails the change stands all the same, with a warning."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0) as file:
            file.write(audit_line(event, details))
    except OSError as error:
        sys.stderr.write(f"fleetcast: warning: {path}: {error.strerror}\n")


def last_line(path: Path, event: str, account_id: str) -> dict[str, object] | None:
    """Returns the last line of an event of an account, if the file has such a line."""
    found = None
    with suppress(OSError, ValueError), path.open("rb") as lines:
        for line in lines:
            if event.encode() in line and account_id.encode() in line:
                found = json.loads(line)
    return found


class AuditLogFollower:
    """Repeats the lines that commands add from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file, self._offset = self._status()

    def follow(self) -> None:
        """Writes the new lines to the log.

        Raises `OSError`, and `ValueError` for a malformed line.
        """
        file_number, size = self._status()
        if file_number != self._file or size < self._offset:  # the file was replaced or truncated
            self._file, self._offset = file_number, 0
        if size == self._offset:
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read(_CHUNK_BYTES)
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            write_line(json.loads(line))

    def _status(self) -> tuple[int, int]:
        """Returns number and size of the file, or 0 and 0 if there is no file."""
        try:
            status = self._path.stat()
        except OSError:
            return 0, 0
        return status.st_ino, status.st_size
