"""The data planes of a data directory. A process opens the plane of a tenant on first use."""

from __future__ import annotations

import logging
import resource
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from fleetcast._core import OpenPlanes, Planes, StoreError, StoreExists
from fleetcast.engine.glances import Glance, folder_state
from fleetcast.engine.saved import SavedFile, SaveDone, SavedPlane

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleetcast._core import MasterKeys, Plane, Verified

_OPEN_MAX = 1_024
_DESCRIPTORS_PER_PLANE = 5

logger = logging.getLogger(__name__)


class Engine:
    """Planes below `directory`, each in a folder named by its account id.

    `master_key` is 32 bytes; it unwraps the data key of every tenant. At most `open_max` planes
    stay open: the planes used last. The default is the number that the limit of descriptors allows,
    at most 1,024. `close_unused` closes planes that were idle for `idle_seconds`. A plane in use is
    never closed for either reason. `accounts` is for planes without files: it returns all accounts,
    or `None` if they cannot be known now.

    Example:
        with Engine("my-planes", master_key=key) as engine:
            engine.create_plane("acme", exist_ok=True)
            plane = engine.plane("acme", tenant_key="acme")
    """

    def __init__(
        self,
        directory: Path | str,
        master_key: bytes | MasterKeys,
        *,
        planes: Planes | None = None,
        open_max: int | None = None,
        idle_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        accounts: Callable[[], set[str] | None] | None = None,
    ) -> None:
        """`clock` has no effect: the engine measures how long a plane was idle."""
        del clock
        self._directory = Path(directory)
        self._planes = Planes.in_directory(self._directory) if planes is None else planes
        self._master_key = master_key
        self._accounts = accounts
        self.open_planes = OpenPlanes(
            self._planes,
            master_key,
            open_max=_open_max() if open_max is None else open_max,
            idle_seconds=idle_seconds,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        count = sum(1 for _ in self._directory.glob("*/plane.mdb"))
        return f"Engine({str(self._directory)!r}, {count} planes)"

    def folder(self, account_id: str) -> Path:
        """Returns the folder of an account's plane."""
        return self._directory / account_id

    def glance(self, account_id: str) -> Glance:
        """Returns a glance at an account's plane, which does not open the plane."""
        state = partial(folder_state, f"{self._directory}/{account_id}")
        return Glance(state, partial(self._planes.counts, account_id))

    def create_plane(self, account_id: str, *, exist_ok: bool = False) -> None:
        """Makes the empty store of a new account. Raises `StoreError`.

        If the account has a store, raises `StoreExists`, or keeps the store with `exist_ok`.
        """
        try:
            self._planes.create(account_id, self._master_key)
        except StoreExists:
            if not exist_ok:
                raise

    def set_retention(self, account_id: str, tenant_key: str, seconds: int | None) -> None:
        """Sets how long an account's rows are kept, `None` for ever. Raises `StoreError`."""
        self.plane(account_id, tenant_key).set_retention(seconds)

    def plane(self, account_id: str, tenant_key: str) -> Plane:
        """Returns the open store of an account. Raises `StoreError` if it cannot be opened.

        Every call looks at the files. Missing files are reported and replaced files are opened
        again, so a plane works again as soon as its files are back.
        """
        return self.open_planes.plane(account_id, tenant_key)

    def close_unused(self) -> None:
        """Closes planes that were idle for a while, and planes that were deleted.

        A tenant's deletion destroys its key file. This call then closes the plane in every process
        that has it open, which frees the key in memory and the space of the files.
        """
        for fault in self.open_planes.close_unused(self._accounts):
            logger.error("%s", fault)

    def release(self, account_id: str, plane: Plane | None = None) -> None:
        """Closes an account's store, if it still is `plane`, so that the next use opens it again.

        Call it for a store that failed: opening the store finds the fault, or finds that the fault
        is gone.
        """
        try:
            self.open_planes.release(account_id, plane)
        except StoreError as error:
            logger.error("%s", error)  # noqa: TRY400 - the message says all

    def destroy_plane(self, account_id: str) -> None:
        """Destroys an account's data key first, then its files."""
        self.release(account_id)
        self._planes.destroy(account_id)

    def verify(self, account_id: str) -> Verified:
        """Checks every byte of an account's store, and closes the store first.

        Raises `StoreMissing`, `StoreUnavailable`.
        """
        self.release(account_id)
        return self._planes.verify(account_id, self._master_key)

    def answers_hash(self, account_id: str, tenant_key: str) -> int:
        """Returns a hash over all answers of scans of an account's store, then closes the store.

        Raises `StoreError`.
        """
        try:
            return self.plane(account_id, tenant_key).answers_hash()
        finally:
            self.release(account_id)

    def bind_plane(self, account_id: str) -> None:
        """Binds a store of fleetcast 0.3.0 to its account. A bound store stays unchanged.

        Raises `StoreError`.
        """
        self._planes.bind(account_id, self._master_key)

    def rewrap_plane(self, account_id: str) -> bool:
        """Wraps an account's data key under the newest master key.

        Returns false if that was done before. Raises `StoreError`.
        """
        return self._planes.rewrap(account_id, self._master_key)

    def is_wrapped_by(self, account_id: str, master_key: bytes) -> bool:
        """Returns true if a master key wraps an account's data key. Raises `StoreMissing`."""
        return self._planes.is_wrapped_by(account_id, master_key)

    def save_plane(
        self,
        account_id: str,
        folder: Path,
        number: int,
        before: Sequence[SavedFile],
    ) -> SaveDone | None:
        """Closes an account's store and saves it as backup `number` into its `folder`.

        Files of the previous backup are not written again. Returns `None` while the compactor runs.
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
        """Makes a new account's store from a `folder` of a backup, and compares it with `saved`.

        `saved_as` is the account that was saved, if it was another account. `master_key` is the key
        of the backup. With `borrow` the segments stay in the backup. Raises `StoreError`; then the
        store cannot be opened.
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
        """Closes every store, after a flush of its waiting batches."""
        for fault in self.open_planes.close():
            logger.error("%s", fault)


def _open_max() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(max(soft // _DESCRIPTORS_PER_PLANE // 2, 1), _OPEN_MAX)
