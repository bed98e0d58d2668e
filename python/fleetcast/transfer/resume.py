"""The file by which an import that was stopped goes on where it was.

The store keeps the position of the import in the commit of each batch, under the key that this
file has; so a batch is never stored twice, whenever the process is killed. The file says what was
asked for and what was reported so far, at some position before. What was stored since is looked
at once more on a plane that keeps nothing.
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
_LINE_BITS = 40  # of the position in the store; the file's index is above them

Position = tuple[int, int]
"""Index of a file, and the number of its lines or rows that are done."""


@dataclass
class State:
    """Content of the file."""

    request: dict[str, Any]
    """The files with their sizes, and the options: a rerun must have the same."""
    key: str
    noted: Position = (0, 0)
    """Everything before is in the report."""
    stored: Position = (0, 0)
    """A position that the store had; it must not have fallen behind."""
    write_id: str | None = None
    """Identifier of the last write."""
    rejects_bytes: int = 0
    is_done: bool = False
    report: Report = field(default_factory=Report)


class Resume:
    """An import that can go on; without a path one that cannot."""

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
                self.save()  # if this fails, it does so before anything is stored
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets another import have the file."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    @property
    def is_kept(self) -> bool:
        """True where the import can go on."""
        return self._path is not None

    def cursor(self, file: int) -> Cursor | None:
        """The key and the position to store with a batch, to which the number of a line comes."""
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
                held = os.dup(file.fileno())  # keeps the lock on what is about to be the file
                failed.callback(os.close, held)
            failed.pop_all()
        self.close()
        self._held = held

    def end(self) -> None:
        """Notes that everything is done. Raises `OSError`, `StoreError`."""
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
