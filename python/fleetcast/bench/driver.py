"""A database as the measurement needs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from fleetcast.bench import processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fleetcast.bench.trucks import TruckRow

Fields = dict[str, float]
Samples = dict[str, dict[int, Fields]]
"""Rows by their time in seconds, of each entity."""


class Session(Protocol):
    """One connection. Not shared between threads."""

    def write(self, payload: Any) -> None:  # noqa: ANN401 - whatever `encode` made
        """Writes a batch; when it returns, the database has acknowledged it."""

    def newest(self, measurement: str) -> dict[str, tuple[int, Fields]]:
        """Time and fields of the newest row of every entity."""

    def window(self, measurement: str, entities: Sequence[str], start: int, end: int) -> Samples:
        """All rows of some entities in a window that ends before `end`."""

    def close(self) -> None:
        """Ends the connection."""


class Driver(ABC):
    """A database whose files lie in `folder`; what it does not say about itself is common."""

    about: ClassVar[str]
    """One line for the report: version, durability, indexes."""
    reads: ClassVar[bool] = True
    """False where it can only be written to."""

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        self.folder = folder
        self.options = options
        self.helpers_cpu_seconds = 0.0
        """CPU of commands that did the database's work and have ended."""

    @abstractmethod
    def start(self) -> None:
        """Starts it; the second time, with what the first one left behind."""

    @abstractmethod
    def process(self) -> int | None:
        """The process that all others of it descend from; `None` where that is not known."""

    @abstractmethod
    def connect(self) -> Session:
        """A new connection."""

    @staticmethod
    @abstractmethod
    def encode(rows: Sequence[TruckRow]) -> object:
        """A batch as `Session.write` takes it; not part of what is measured."""

    @abstractmethod
    def settle(self) -> None:
        """Has it do now what it would do later: compaction, checkpoint."""

    def stored_bytes(self) -> int | None:
        """Bytes on disk; `None` where nobody knows."""
        return processes.bytes_below(self.folder)

    def cpu_seconds(self) -> float | None:
        """CPU of all its processes so far, since its last start."""
        process = self.process()
        if process is None:
            return None
        return processes.cpu_seconds_below(process) + self.helpers_cpu_seconds

    def kill(self) -> None:
        """`kill -9` of all its processes; returns when they have ended."""
        process = self.process()
        if process is not None:
            processes.kill_below(process)

    @abstractmethod
    def stop(self) -> None:
        """Ends it as its operator would."""
