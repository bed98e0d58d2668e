"""Where the supervisor pins up the settings in force, and every child reads them.

Anonymous shared memory: a version, and two halves of which the version says which one counts. The
supervisor alone writes, always into the other half, so a reader that finds the version unchanged
has read a whole text. Asking whether there is news costs one read of memory, so children ask at
every request, and what was pinned up is in force for all that begin after it.
"""

from __future__ import annotations

import mmap
import os
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

import structlog

from fleetcast.config import settings_from_json, settings_to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.config import Settings

T = TypeVar("T")

_HALF_BYTES = 1 << 20
_HEAD_BYTES = 4096

logger = structlog.get_logger(__name__)


class Board:
    """One text in shared memory."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self._words = memoryview(self._memory).cast("Q")

    @staticmethod
    def made(settings: Settings) -> Board:
        """A new board with its first text."""
        descriptor = os.memfd_create("fleetcast-settings")
        os.ftruncate(descriptor, _HEAD_BYTES + 2 * _HALF_BYTES)
        board = Board(descriptor)
        board.publish(settings)
        return board

    @property
    def version(self) -> int:
        """Grows with every text."""
        return self._words[0]

    def publish(self, settings: Settings) -> None:
        """Pins up new settings; for the supervisor. Raises `ValueError` for a text too long."""
        text = settings_to_json(settings).encode()
        if len(text) > _HALF_BYTES:
            message = f"settings of {len(text)} bytes"
            raise ValueError(message)
        version = self.version + 1
        start = _start(version)
        self._memory[start : start + len(text)] = text
        self._words[1 + version % 2] = len(text)
        self._words[0] = version

    def read(self) -> tuple[int, Settings]:
        """The text that counts, and its version."""
        while True:
            version = self.version
            start = _start(version)
            text = self._memory[start : start + self._words[1 + version % 2]]
            if self.version == version:
                return version, settings_from_json(text.decode())


class Live(Generic[T]):
    """Something made of the settings, and made anew when they change. Safe between threads."""

    def __init__(self, board: Board, make: Callable[[Settings], T]) -> None:
        self._board = board
        self._make = make
        self._lock = threading.Lock()
        self._version, settings = board.read()
        self._made = make(settings)

    def current(self) -> T:
        """As the settings have it now."""
        if self._board.version != self._version:
            with self._lock:
                if self._board.version != self._version:
                    self._renew()
        return self._made

    def _renew(self) -> None:
        version, settings = self._board.read()
        try:
            self._made = self._make(settings)
        except Exception:
            logger.exception("changed settings could not be taken over")
        self._version = version


def _start(version: int) -> int:
    return _HEAD_BYTES + version % 2 * _HALF_BYTES
