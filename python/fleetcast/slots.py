"""The planes that a process has open: their files, and who still uses them."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import weakref
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from fleetcast.errors import StoreDamaged, StoreError, StoreMissing, StoreUnavailable, reason

_OWN_REFERENCES = 2

logger = logging.getLogger(__name__)


class Closable(Protocol):
    """The part of a plane that is needed here."""

    def buffered_bytes(self) -> int:
        """Bytes that wait for `flush`. Raises `StoreError`."""

    def flush(self) -> None:
        """Makes durable what waits. Raises `StoreError`."""

    def close(self) -> None:
        """Ends its use."""

    def close_unused(self) -> bool:
        """Ends its use unless a call is under way; true where it has."""


P = TypeVar("P", bound=Closable)


@dataclass(frozen=True)
class Files:
    """The identity of a plane's two files, and the state of its log where that was asked for."""

    plane: os.stat_result
    key: os.stat_result
    log: tuple[tuple[str, int, int], ...] = ()

    @classmethod
    def of(cls, folder: str, *, with_log: bool = False) -> Files:
        """Raises `StoreMissing`, `StoreUnavailable`."""
        try:
            plane = os.stat(f"{folder}/plane.mdb")  # noqa: PTH116 - with each request
            key = os.stat(f"{folder}/key")  # noqa: PTH116 - with each request
            return cls(plane, key, _log_of(folder) if with_log else ())
        except (FileNotFoundError, NotADirectoryError) as error:
            raise StoreMissing(reason(error)) from error
        except OSError as error:
            raise StoreUnavailable(reason(error)) from error

    def carry(self, earlier: Files) -> bool:
        """True where a plane opened from the `earlier` ones still stands on these.

        Others are at work in the files all the time, but a plane only grows: a mapped file that
        was cut short must not be touched.
        """
        return (
            self.plane.st_size >= earlier.plane.st_size
            and os.path.samestat(self.plane, earlier.plane)
            and os.path.samestat(self.key, earlier.key)
            and self.key.st_mtime_ns == earlier.key.st_mtime_ns
        )

    def untouched(self, earlier: Files) -> bool:
        """True where nobody has changed anything since `earlier`; both have the log."""
        return self.carry(earlier) and (
            (self.plane.st_ctime_ns, self.key.st_ctime_ns, self.log)
            == (earlier.plane.st_ctime_ns, earlier.key.st_ctime_ns, earlier.log)
        )


def _log_of(folder: str) -> tuple[tuple[str, int, int], ...]:
    """Name, length and time of change of each file of the log; none where there is no log."""
    try:
        with os.scandir(f"{folder}/log") as entries:
            stats = [(entry.name, entry.stat()) for entry in entries]
    except FileNotFoundError:  # of a store of an earlier version, or gone meanwhile: compacted
        return ()
    return tuple(sorted((name, stat.st_size, stat.st_ctime_ns) for name, stat in stats))


class Opened(Generic[P]):
    """An open plane and the files it was opened from.

    `kept` holds it for the next use. One that was let go of while a request still used it lives
    until that ends, and is taken back if it is asked for before: two handles on the same files
    cannot be had in one process.
    """

    __slots__ = ("_seen", "files", "kept")

    def __init__(self, plane: P, files: Files | None) -> None:
        self.kept: P | None = plane
        self.files = files
        self._seen = weakref.ref(plane)

    @property
    def plane(self) -> P | None:
        """The plane, also while only others hold it; `None` once it is closed."""
        return self._seen()

    def let_go(self) -> bool:
        """Closes it unless somebody uses it; then its last user does. True where it is closed."""
        plane, self.kept = self.kept, None
        # Nobody can get at it any more, so the count does not rise: ours, and the argument's.
        if plane is not None and sys.getrefcount(plane) <= _OWN_REFERENCES:
            if plane.close_unused():
                return True
            self.kept = plane  # a call that needs no interpreter is under way
            return False
        return plane is None and self._seen() is None


class Slot(Generic[P]):
    """Facts that a process has about one account's plane. They go when the plane is closed."""

    __slots__ = ("damage", "lock", "opened", "used_at")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.used_at = 0.0
        self.opened: Opened[P] | None = None
        self.damage: tuple[StoreDamaged, Files] | None = None

    def close(self) -> None:
        """Closes the plane under all who hold it; calls under way end first."""
        opened, self.opened = self.opened, None
        plane = None if opened is None else opened.plane
        if plane is not None:
            try:
                plane.flush()
            except StoreError as error:
                logger.error("%s", error)  # noqa: TRY400 - the message says all
            plane.close()

    def rest(self) -> bool:
        """Lets go of the plane; true where nothing of it is left.

        One with batches that wait for a flush stays: storing them may take as long as its disk
        takes, and another tenant's request may be what asks for this.
        """
        if self.opened is None:
            return True
        with contextlib.suppress(StoreError):  # whoever used it may have closed it
            if self.opened.kept is not None and self.opened.kept.buffered_bytes():
                return False
        if not self.opened.let_go():
            return False
        self.opened = None
        return True
