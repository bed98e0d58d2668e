"""The file by which a stopped import resumes at its position.

The store keeps the position of the import in the commit of each batch, under a key in this file. So
a batch is never stored twice, whenever the process is killed. The file holds the request and the
report up to an earlier position. Rows stored after that position are read again on a plane that
stores no rows, which completes the report.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetcast.errors import OperatorError
from fleetcast.output_file import locked_file, output_file
from fleetcast.transfer.report import Report

if TYPE_CHECKING:
    from fleetcast.engine import Plane
    from fleetcast.transfer.batches import Cursor

_VERSION = 1
_LINE_BITS = 40  # of the position in the store; the file's index is in the bits above

Position = tuple[int, int]
"""Index of a file, and the number of its lines or rows that are done.

Example: (2, 500) in the store is `2 << 40 | 500`.
"""


@dataclass
class State:
    """Content of the file."""

    request: dict[str, Any]
    """The files with their sizes, and the options: a rerun must have the same."""
    key: str
    noted: Position = (0, 0)
    """The report covers everything before this position."""
    stored: Position = (0, 0)
    """A position that the store had; the store must not be behind it."""
    write_id: str | None = None
    """Identifier of the last write."""
    rejects_bytes: int = 0
    is_done: bool = False
    report: Report = field(default_factory=Report)


class Resume:
    """An import that can resume, or, without a path, an import that cannot."""

    def __init__(self, path: Path | None, plane: Plane, request: dict[str, Any]) -> None:
        self._path = path
        self._plane = plane
        self.state = State(request, secrets.token_hex(16))
        self.stored: Position = (0, 0)
        self._held: int | None = None
        if path is None:
            return
        taken = f"another import is using {path}: wait until it ends"
        self._held = locked_file(Path(os.path.realpath(path)), taken)
        try:
            if os.fstat(self._held).st_size:
                self._go_on(path, request)
            if not self.state.is_done:
                self.save()  # if this fails, no record has been stored yet
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets another import have the file."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def cursor(self, file: int) -> Cursor | None:
        """Key and position to store with a batch. The number of a line is added to the position."""
        if self._path is None:
            return None
        return bytes.fromhex(self.state.key), file << _LINE_BITS

    def save(self) -> None:
        """Replaces the file, durably. Raises `OSError`."""
        if self._path is None:
            return
        self.state.stored = self.stored
        document = {"version": _VERSION, **asdict(self.state)}
        with ExitStack() as failed:
            with output_file(self._path) as file:
                file.write(json.dumps(document).encode())
                held = os.dup(file.fileno())  # keeps the lock on the replacing file
                failed.callback(os.close, held)
            failed.pop_all()
        self.close()
        self._held = held

    def end(self) -> None:
        """Notes that the import is done. Raises `OSError`, `StoreError`."""
        if self._path is None:
            return
        self.state.is_done = True
        self.save()
        self._plane.forget_cursor(bytes.fromhex(self.state.key))

    def _go_on(self, path: Path, request: dict[str, Any]) -> None:
        self.state = state = _read(path)
        if state.request != request:
            changed = sorted(name for name in request if state.request.get(name) != request[name])
            message = f"{path} belongs to another import: {', '.join(changed)} differ"
            raise OperatorError(message)
        if state.is_done:
            return
        position = self._plane.cursor(bytes.fromhex(state.key))
        if position is not None:
            self.stored = divmod(int.from_bytes(position, "little"), 1 << _LINE_BITS)
        if self.stored < state.stored:
            message = (
                f"{path}: the store has forgotten this import, perhaps because a backup was"
                " restored; remove the file to import everything anew"
            )
            raise OperatorError(message)


def _read(path: Path) -> State:
    try:
        document = json.loads(path.read_bytes())
        if document.pop("version") != _VERSION:
            message = f"{path} is of another version of this program"
            raise OperatorError(message)
        report = Report(**document.pop("report"))
        noted = _position(document.pop("noted"))
        stored = _position(document.pop("stored"))
        return State(**document, report=report, noted=noted, stored=stored)
    except (ValueError, TypeError, KeyError, AttributeError):
        message = f"{path} is no file of --resume"
        raise OperatorError(message) from None


def _position(numbers: list[int]) -> Position:
    file, line = numbers
    return file, line
