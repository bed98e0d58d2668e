"""Settings in force, written by the supervisor and read by every child.

The anonymous shared memory has a version and two halves. The version says which half counts. Only
the supervisor writes, always into the other half. A reader that finds the version unchanged has
therefore read a whole text. Reading the version costs one read of memory, so children ask at every
request. Settings are in force for all requests that begin after they were published.

Example: version 7 reads half 1; the next settings go to half 0 and get version 8.
"""

from __future__ import annotations

import logging
import mmap
import os
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from fleetcast.config import settings_from_json, settings_to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.config import Settings

T = TypeVar("T")

_HALF_BYTES = 1 << 20
_HEAD_BYTES = 4096

logger = logging.getLogger(__name__)


class SharedSettings:
    """Settings in the shared memory behind `descriptor`."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self._words = memoryview(self._memory).cast("Q")

    @staticmethod
    def create(settings: Settings) -> SharedSettings:
        """Makes new memory with its first settings."""
        descriptor = os.memfd_create("fleetcast-settings")
        os.ftruncate(descriptor, _HEAD_BYTES + 2 * _HALF_BYTES)
        shared = SharedSettings(descriptor)
        shared.publish(settings)
        return shared

    @property
    def version(self) -> int:
        """Number of publications so far."""
        return self._words[0]

    def publish(self, settings: Settings) -> None:
        """Puts settings in force; only the supervisor calls it.

        Raises `ValueError` for a text too long.
        """
        text = settings_to_json(settings).encode()
        if len(text) > _HALF_BYTES:
            message = f"settings of {len(text)} bytes"
            raise ValueError(message)
        version = self.version + 1
        start = _start(version)
        self._memory[start : start + len(text)] = text
        self._words[1 + version % 2] = len(text)
        self._words[0] = version

    def read(self) -> Settings:
        """Returns the settings in force."""
        return self.read_versioned()[1]

    def read_versioned(self) -> tuple[int, Settings]:
        """Returns the version and the settings in force."""
        while True:
            version = self.version
            start = _start(version)
            text = self._memory[start : start + self._words[1 + version % 2]]
            if self.version == version:
                return version, settings_from_json(text.decode())


class Live(Generic[T]):
    """An object built from the settings, and built again when they change. Safe between threads."""

    def __init__(self, shared: SharedSettings, build: Callable[[Settings], T]) -> None:
        self._shared = shared
        self._build = build
        self._lock = threading.Lock()
        self._version, settings = shared.read_versioned()
        self._built = build(settings)

    def current(self) -> T:
        """Returns the object for the settings in force."""
        if self._shared.version != self._version:
            with self._lock:
                if self._shared.version != self._version:
                    self._renew()
        return self._built

    def _renew(self) -> None:
        version, settings = self._shared.read_versioned()
        try:
            self._built = self._build(settings)
        except Exception:
            logger.exception("changed settings could not be taken over")
        self._version = version


def _start(version: int) -> int:
    return _HEAD_BYTES + version % 2 * _HALF_BYTES
