"""The data planes of one data directory: opened on first use, one per tenant and process.

This is the only module that reaches the compiled engine's stores. Open an `Engine` after a fork,
never before: LMDB environments do not survive one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import threading
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from fleetcast._core import (
    AGGREGATIONS,
    INTERVALS,
    MEASUREMENTS,
    ArrowStream,
    Compacted,
    Limiter,
    Plane,
    Stats,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreMissing,
    StoreUnavailable,
    Verified,
    WriteResult,
    format_time,
    parse_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


__all__ = [
    "AGGREGATIONS",
    "INTERVALS",
    "MEASUREMENTS",
    "Aggregation",
    "ArrowStream",
    "Compacted",
    "Engine",
    "Interval",
    "Limiter",
    "Plane",
    "Stats",
    "Verified",
    "WriteResult",
    "encode_records",
    "format_time",
    "parse_time",
    "peek",
]

logger = logging.getLogger(__name__)

Interval = Literal["15s", "30s", "1m", "5m", "15m", "1h"]
"""One of `INTERVALS`."""
_REMOVALS_MAX = 10

Aggregation = Literal["mean", "min", "max", "last"]
"""One of `AGGREGATIONS`."""


@dataclass(frozen=True)
class _Files:
    """The identity of a plane's two files."""

    plane: os.stat_result
    key: os.stat_result

    @classmethod
    def of(cls, folder: str) -> _Files:
        """Raises `StoreMissing`, `StoreUnavailable`."""
        try:
            return cls(os.stat(f"{folder}/plane.mdb"), os.stat(f"{folder}/key"))  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError) as error:
            raise StoreMissing(str(error)) from error
        except OSError as error:
            raise StoreUnavailable(str(error)) from error

    def carry(self, earlier: _Files) -> bool:
        """Whether a plane opened from the `earlier` ones still stands on these.

        Others are at work in the files all the time, but a plane only grows: a mapped file that
        was cut short must not be touched.
        """
        return (
            self.plane.st_size >= earlier.plane.st_size
            and os.path.samestat(self.plane, earlier.plane)
            and os.path.samestat(self.key, earlier.key)
            and self.key.st_mtime_ns == earlier.key.st_mtime_ns
        )

    def untouched(self, earlier: _Files) -> bool:
        """Whether nobody has changed anything since `earlier`."""
        return self.carry(earlier) and (self.plane.st_ctime_ns, self.key.st_ctime_ns) == (
            earlier.plane.st_ctime_ns,
            earlier.key.st_ctime_ns,
        )


class _Slot:
    """What a process knows of one account's plane."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.opened: tuple[Plane, _Files] | None = None
        self.damage: tuple[StoreDamaged, _Files] | None = None

    def note_growth(self, opened: tuple[Plane, _Files], files: _Files) -> None:
        """The files that `opened` stands on were seen to be longer."""
        with self.lock:
            if self.opened is opened:
                self.opened = opened[0], files

    def close(self) -> None:
        opened, self.opened = self.opened, None
        if opened is not None:
            try:
                opened[0].flush()
            except StoreError as error:
                logger.error("%s", error)  # noqa: TRY400 - the message says all
            opened[0].close()


class Engine:
    """Planes below `directory`, each in a folder named by its account id.

    `master_key` is 32 bytes; it unwraps the data key of every tenant.
    """

    def __init__(self, directory: Path, master_key: bytes) -> None:
        self._directory = directory
        self._master_key = master_key
        self._slots: dict[str, _Slot] = {}

    def create_plane(self, account_id: str) -> None:
        """Makes the empty store of a new account. Raises `StoreError`."""
        Plane.create(str(self._directory / account_id), self._master_key)

    def set_retention(self, account_id: str, tenant_key: str, seconds: int | None) -> None:
        """Sets how long an account's rows are kept, `None` for ever. Raises `StoreError`."""
        self.plane(account_id, tenant_key).set_retention(seconds)

    def plane(self, account_id: str, tenant_key: str) -> Plane:
        """The open store of an account. Raises `StoreError` where it cannot be opened.

        Every call looks at the files: those that are missing are reported and those that were
        replaced are opened anew, so that a plane is there again as soon as its files are.
        """
        folder = f"{self._directory}/{account_id}"
        slot = self._slots.get(account_id)
        if slot is None:
            slot = self._slots.setdefault(account_id, _Slot())
        # Before the files: others may learn of a greater length at any time.
        opened = slot.opened
        try:
            files = _Files.of(folder)
        except StoreError:
            self.release(account_id)
            raise
        if opened is not None and files.carry(opened[1]):
            if files.plane.st_size > opened[1].plane.st_size:
                slot.note_growth(opened, files)
            return opened[0]
        with slot.lock:
            return self._open(slot, folder, tenant_key)

    def _open(self, slot: _Slot, folder: str, tenant_key: str) -> Plane:
        files = _Files.of(folder)  # nobody else changes what the slot knows of them now
        if slot.opened is not None:
            if files.carry(slot.opened[1]):
                return slot.opened[0]
            slot.close()
        if slot.damage is not None and files.untouched(slot.damage[1]):
            # Opening reads everything; a damaged plane must not cost that with each request.
            raise StoreDamaged(*slot.damage[0].args)
        slot.damage = None
        try:
            plane = Plane.open(folder, self._master_key, tenant_key)
        except StoreDamaged as error:
            slot.damage = error, _Files.of(folder)
            raise
        slot.opened = plane, files
        return plane

    def release(self, account_id: str, plane: Plane | None = None) -> None:
        """Closes an account's store, if it still is `plane`, so that the next use opens it anew.

        For a store that failed: whatever ails it is found out, or gone, when it is opened.
        """
        slot = self._slots.get(account_id)
        if slot is None:
            return
        with slot.lock:
            if plane is None or (slot.opened is not None and slot.opened[0] is plane):
                slot.close()

    def destroy_plane(self, account_id: str) -> None:
        """Destroys an account's data key first, then its files."""
        self.release(account_id)
        folder = self._directory / account_id
        (folder / "key").unlink(missing_ok=True)
        for _ in range(_REMOVALS_MAX):
            # A compaction under way may add a file, until it finds its folder gone.
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break

    def flush(self) -> None:
        """Makes durable what was acknowledged before it was: asynchronous mode (F1).

        A store that fails is released; one without room keeps what waits, for the next flush.
        Raises the last `StoreError`, after every store has had its turn.
        """
        failure: StoreError | None = None
        for account_id, slot in list(self._slots.items()):
            opened = slot.opened
            if opened is None:
                continue
            try:
                opened[0].flush()
            except StoreFull as error:
                failure = error
            except StoreError as error:
                failure = error
                self.release(account_id, opened[0])
        if failure is not None:
            raise failure

    def buffered_bytes(self) -> int:
        """Sealed bytes that wait for `flush`, of all stores together."""
        waiting = 0
        for slot in list(self._slots.values()):
            if slot.opened is not None:
                with contextlib.suppress(StoreError):  # closed at this moment
                    waiting += slot.opened[0].buffered_bytes()
        return waiting

    def verify(self, account_id: str) -> Verified:
        """Looks at every byte of an account's store, which is closed here for it.

        Raises `StoreMissing`, `StoreUnavailable`.
        """
        self.release(account_id)
        return Plane.verify(str(self._directory / account_id), self._master_key)

    def close(self) -> None:
        """Closes every store, what waits for a flush being stored first."""
        for account_id in list(self._slots):
            self.release(account_id)


def peek(directory: Path) -> Stats:
    """Counters of the plane in `directory`, read without its key and without its rows.

    This process must not have the plane open. Raises `StoreError`.
    """
    return Plane.peek(str(directory))


def encode_records(records: Iterable[Mapping[str, object]]) -> bytes:
    """Records as the JSON body of a write; `datetime` values become ISO 8601 text.

    Raises `ValueError` for NaN and infinities, `TypeError` for values JSON has no word for.
    """
    return json.dumps(list(records), allow_nan=False, default=_encode_datetime).encode()


def _encode_datetime(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    message = f"a {type(value).__name__} cannot be written as telemetry"
    raise TypeError(message)
