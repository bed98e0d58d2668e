"""The data planes of one data directory: opened on first use, one per tenant and process."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from functools import partial
from heapq import nsmallest
from typing import TYPE_CHECKING

from fleetcast._core import (
    Plane,
    Planes,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnreachable,
)
from fleetcast.engine.glances import FolderGlance
from fleetcast.engine.saved import SavedFile, SaveDone, SavedPlane
from fleetcast.slots import Files, Opened, Slot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fleetcast._core import Verified
    from fleetcast.engine.glances import Glance

_OPEN_MAX = 1_024
_DESCRIPTORS_PER_PLANE = 5


class Engine:
    """Planes below `directory`, each in a folder named by its account id.

    `master_key` is 32 bytes; it unwraps the data key of every tenant. At most `open_max` planes
    stay open, those used last; by default as many as the limit of descriptors allows, up to
    1,024. `close_unused` closes those that nobody has used for `idle_seconds`. A plane in use is
    never closed for either reason.
    """

    def __init__(
        self,
        directory: Path,
        master_key: bytes,
        *,
        planes: Planes | None = None,
        open_max: int | None = None,
        idle_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._planes = Planes.in_directory(directory) if planes is None else planes
        self._master_key = master_key
        self._open_max = _open_max() if open_max is None else open_max
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._slots: dict[str, Slot[Plane]] = {}

    def folder(self, account_id: str) -> Path:
        """Folder of an account's plane."""
        return self._directory / account_id

    def glance(self, account_id: str) -> Glance:
        """Looks at an account's plane that do not open it."""
        counts = partial(self._planes.counts, account_id)
        return FolderGlance(f"{self._directory}/{account_id}", counts)

    def create_plane(self, account_id: str) -> None:
        """Makes the empty store of a new account. Raises `StoreError`."""
        self._planes.create(account_id, self._master_key)

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
        # Before the files: others may learn of a greater length at any time.
        opened = None if slot is None else slot.opened
        seen = None if opened is None else opened.files
        try:
            files = Files.of(folder)
        except StoreError:
            self.release(account_id)
            raise
        if slot is not None and opened is not None and seen is not None and files.carry(seen):
            plane = opened.kept
            if plane is not None:
                if files.plane.st_size > seen.plane.st_size:
                    opened.files = files
                slot.used_at = self._clock()
                return plane
        plane = self._open(account_id, tenant_key)
        self._close_least_used()
        return plane

    def _open(self, account_id: str, tenant_key: str) -> Plane:
        while True:
            slot = self._slots.setdefault(account_id, Slot())
            with slot.lock:
                if self._slots.get(account_id) is slot:  # or it went while we waited
                    slot.used_at = self._clock()
                    return self._open_slot(slot, account_id, tenant_key)

    def _open_slot(self, slot: Slot[Plane], account_id: str, tenant_key: str) -> Plane:
        folder = f"{self._directory}/{account_id}"
        # Before the files, as in `plane`; nobody else opens or closes anything of the slot now.
        seen = None if slot.opened is None else slot.opened.files
        files = Files.of(folder, with_log=True)
        if slot.opened is not None and seen is not None:
            plane = slot.opened.plane
            if plane is not None and files.carry(seen):
                slot.opened.kept = plane
                return plane
            slot.close()
        if slot.damage is not None and files.untouched(slot.damage[1]):
            # Opening reads everything; a damaged plane must not cost that with each request.
            raise StoreDamaged(*slot.damage[0].args)
        slot.damage = None
        try:
            plane = self._planes.open(account_id, self._master_key, tenant_key)
        except StoreDamaged as error:
            slot.damage = error, Files.of(folder, with_log=True)
            raise
        slot.opened = Opened(plane, files)
        return plane

    def files(self, account_id: str, plane: Plane) -> tuple[str, Files | None] | None:
        """Folder of an account's store, and its files as they were when it was last used.

        `None` where `plane` is no longer its store. A store in a database has no files.
        """
        slot = self._slots.get(account_id)
        opened = None if slot is None else slot.opened
        if opened is None or opened.kept is not plane:
            return None
        return f"{self._directory}/{account_id}", opened.files

    def close_unused(self) -> None:
        """Closes what nobody has used for a while, and what was deleted, within a call of it.

        A tenant's deletion destroys its key file, so that its plane, with the key in memory and
        the space of its files, is let go of here by every process that has it open.
        """
        before = self._clock() - self._idle_seconds
        for account_id, slot in list(self._slots.items()):
            if not self._is_there(account_id):
                self.release(account_id)
                self._rest(account_id, slot)
            elif slot.used_at <= before:
                self._rest(account_id, slot)

    def _is_there(self, account_id: str) -> bool:
        """False for a plane that was deleted."""
        return os.path.exists(f"{self._directory}/{account_id}/key")  # noqa: PTH110 - each second

    def _close_least_used(self) -> None:
        excess = len(self._slots) - self._open_max
        if excess <= 0:
            return
        oldest = nsmallest(excess, list(self._slots.items()), key=lambda item: item[1].used_at)
        for account_id, slot in oldest:
            self._rest(account_id, slot)

    def _rest(self, account_id: str, slot: Slot[Plane]) -> None:
        if not slot.lock.acquire(blocking=False):
            return  # it is being opened: in use
        try:
            if slot.rest() and self._slots.get(account_id) is slot:
                del self._slots[account_id]
        finally:
            slot.lock.release()

    def release(self, account_id: str, plane: Plane | None = None) -> None:
        """Closes an account's store, if it still is `plane`, so that the next use opens it anew.

        For a store that failed: whatever ails it is found out, or gone, when it is opened.
        """
        slot = self._slots.get(account_id)
        if slot is None:
            return
        with slot.lock:
            if plane is None or (slot.opened is not None and slot.opened.plane is plane):
                slot.close()
            if slot.opened is None and slot.damage is None and self._slots.get(account_id) is slot:
                del self._slots[account_id]

    def destroy_plane(self, account_id: str) -> None:
        """Destroys an account's data key first, then its files."""
        self.release(account_id)
        self._planes.destroy(account_id)

    def waiting(self) -> dict[str, tuple[Plane, int]]:
        """Planes with acknowledged batches that are not durable yet, by account: asynchronous mode.

        With each the sealed bytes that wait.
        """
        found = {}
        for account_id, slot in list(self._slots.items()):
            plane = None if slot.opened is None else slot.opened.plane
            if plane is None:
                continue
            with contextlib.suppress(StoreError):  # closed at this moment
                waiting = plane.buffered_bytes()
                if waiting:
                    found[account_id] = plane, waiting
        return found

    def flush(self, account_id: str, plane: Plane) -> None:
        """Makes durable what waits in a plane that `waiting` gave.

        A store that fails is released; one without room, or whose engine is away, keeps what waits
        for the next flush. Raises `StoreError`.
        """
        try:
            plane.flush()
        except (StoreFull, StoreUnreachable):
            raise
        except StoreError:
            self.release(account_id, plane)
            raise

    def verify(self, account_id: str) -> Verified:
        """Looks at every byte of an account's store, which is closed here for it.

        Raises `StoreMissing`, `StoreUnavailable`.
        """
        self.release(account_id)
        return self._planes.verify(account_id, self._master_key)

    def answers_hash(self, account_id: str, tenant_key: str) -> int:
        """Hash over everything that scans of an account's store answer; it is closed then.

        Raises `StoreError`.
        """
        try:
            return self.plane(account_id, tenant_key).answers_hash()
        finally:
            self.release(account_id)

    def bind_plane(self, account_id: str) -> None:
        """Binds a store of fleetcast 0.3.0 to its account; one that is bound stays as it is.

        Raises `StoreError`.
        """
        self._planes.bind(account_id, self._master_key)

    def save_plane(
        self,
        account_id: str,
        folder: Path,
        number: int,
        before: Sequence[SavedFile],
    ) -> SaveDone | None:
        """Saves an account's store, closed here for it, as backup `number` into its `folder`.

        Files of the backup before are not written again. `None` where the compactor is at work.
        Raises `StoreError`.
        """
        self.release(account_id)
        done = self._planes.save(account_id, self._master_key, str(folder), number, [*before])
        if done is None:
            return None
        files = tuple(SavedFile(*file) for file in done.files)
        plane = SavedPlane(files, done.rows, done.values, done.content)
        return SaveDone(plane, done.bytes_written, done.bytes_linked)

    def restore_plane(
        self,
        account_id: str,
        folder: Path,
        saved: SavedPlane,
        *,
        saved_as: str | None = None,
        master_key: bytes | None = None,
        borrow: bool = False,
    ) -> None:
        """Makes the store of a new account out of a `folder` of a backup, compared with `saved`.

        `saved_as` is the account that was saved if it was another one, and `master_key` that of the
        backup. With `borrow` the segments stay
        where they are. Raises `StoreError`; then the store cannot be opened.
        """
        self._planes.restore(
            account_id,
            self._master_key,
            saved_as or account_id,
            master_key or self._master_key,
            str(folder),
            [*saved.files],
            saved.content,
            borrow=borrow,
        )

    def close(self) -> None:
        """Closes every store, what waits for a flush being stored first."""
        for account_id in list(self._slots):
            self.release(account_id)


def _open_max() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(max(soft // _DESCRIPTORS_PER_PLANE // 2, 1), _OPEN_MAX)
