"""The calls that the measurement needs of a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from fleetcast.bench import processes, trucks

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fleetcast.bench.rows import RowNames, SentRow

Fields = dict[str, float]
Samples = dict[str, dict[int, Fields]]
"""Rows of each entity by their time in nanoseconds since 1970."""

_END_SECONDS = 60.0


class Writer(Protocol):
    """One connection to write. Not safe to share between threads."""

    def write(self, payload: Any) -> None:  # noqa: ANN401 - the result of `encode`
        """Writes a batch. The database has acknowledged the batch when this returns."""

    def close(self) -> None:
        """Ends the connection."""


class ReadSession(Protocol):
    """One connection to read."""

    def newest(self, measurement: str, end_ns: int) -> dict[str, tuple[int, Fields]]:
        """Returns time and fields of the newest row of every entity with a row in the last week.

        The week ends at `end_ns`, and no row is later.
        """

    def window(
        self, measurement: str, entities: Sequence[str], start_ns: int, end_ns: int
    ) -> Samples:
        """Returns the rows of some entities from `start_ns` to before `end_ns`."""

    def close(self) -> None:
        """Ends the connection."""


class Session(Writer, ReadSession, Protocol):
    """One connection to write and to read."""


class Driver(ABC):
    """A database whose files lie in `folder`.

    A subclass says in which points its database differs.
    """

    about: ClassVar[str]
    """One line for the report: version, durability, indexes."""
    reads: ClassVar[bool] = True
    """False if the database can only be written to."""
    names: RowNames = trucks.NAMES
    """Names in the rows of the workload."""

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        self.folder = folder
        self.options = options
        self.helpers_cpu_seconds = 0.0
        """CPU of commands that did work of the database and have ended."""

    @abstractmethod
    def start(self) -> None:
        """Starts the database. A second start finds the files of the first."""

    @abstractmethod
    def process(self) -> int | None:
        """Returns the process above all others of the database; `None` if it is unknown."""

    @abstractmethod
    def connect(self) -> Session:
        """Opens a new connection."""

    @abstractmethod
    def encode(self, rows: Sequence[SentRow]) -> object:
        """Returns a batch in the form that `Session.write` takes.

        The measurement leaves this time out.
        """

    @abstractmethod
    def settle(self) -> None:
        """Lets the database do its postponed work now: compaction, checkpoint."""

    def stored_bytes(self) -> int | None:
        """Returns the database's bytes on disk; `None` if they are unknown."""
        return processes.bytes_below(self.folder)

    def cpu_seconds(self) -> float | None:
        """Returns the CPU of all processes of the database since its last start."""
        process = self.process()
        if process is None:
            return None
        return processes.cpu_seconds_below(process) + self.helpers_cpu_seconds

    def kill(self) -> None:
        """Ends all processes of the database by `kill -9`; returns when they have ended."""
        process = self.process()
        if process is not None:
            processes.kill_below(process)

    @abstractmethod
    def stop(self) -> None:
        """Ends the database as its operator would."""


class ProgramDriver(Driver):
    """A database in a program that the driver starts."""

    program: subprocess.Popen[Any] | None = None

    def process(self) -> int | None:
        """See `Driver`."""
        return self.program.pid if self.program else None

    def kill(self) -> None:
        """See `Driver`."""
        super().kill()
        self.end()

    def stop(self) -> None:
        """See `Driver`."""
        if self.program is not None:
            self.program.terminate()
        self.end()

    def end(self) -> None:
        """Waits until the program has ended."""
        if self.program is not None:
            self.program.wait(_END_SECONDS)
            if self.program.stdout:
                self.program.stdout.close()
            self.program = None
