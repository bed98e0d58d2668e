"""The control store: tenants and keys in an LMDB environment of its own.

It is opened on first use, so make a `ControlStore` before a fork if you like, but use it only
after one. Every read goes to LMDB, so what one process commits, all see with their next read.
When the files are damaged or gone a use raises `ControlStoreUnavailable`, and the next use opens
them anew.
"""

from __future__ import annotations

import hmac
import mmap
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import lmdb

from fleetcast.accounts.tables import ControlStoreUnavailable, Tables
from fleetcast.errors import OperatorError
from fleetcast.security.master_key import derive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import stat_result
    from pathlib import Path

_MAP_BYTES = 1 << 30  # address space, not disk: some million keys
_FILE_BYTES_MIN = 2 * mmap.PAGESIZE  # LMDB reads its two head pages before anything else
_READERS_MAX = 1024  # threads of all processes that read at once
_FORMAT = b"fleetcast control 1"
_FORMAT_KEY = b"format"
_MASTER_KEY_KEY = b"master-key-check"
_MASTER_KEY_LABEL = "fleetcast control store check 1"


class _Open:
    """An open environment and the file it was opened from."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "data.mdb"
        self.file = self.path.stat()
        if self.file.st_size < _FILE_BYTES_MIN or self.file.st_size % mmap.PAGESIZE:
            message = f"{self.path} is cut short"
            raise OSError(message)
        self.environment = _environment(directory, create=False)
        try:
            _back_with_file(self.environment, self.path)
            self.environment.reader_check()
            _check_format(self.environment, directory)
            self.tenants = self.environment.open_db(b"tenants", create=False)
            self.keys = self.environment.open_db(b"keys", create=False)
            self.usage = _usage(self.environment)
        except BaseException:
            self.environment.close()
            raise

    def stands_on(self, file: stat_result) -> bool:
        """Whether `file` is still the one that is mapped: a cut file must not be touched."""
        same = (file.st_dev, file.st_ino) == (self.file.st_dev, self.file.st_ino)
        return same and file.st_size >= self.file.st_size


class ControlStore:
    """The tenants and keys of one data directory. Safe to share between threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open: _Open | None = None
        self._lock = threading.Lock()

    @staticmethod
    def create(directory: Path, master_key: bytes) -> None:
        """Makes an empty store bound to the master key.

        Raises `OSError`, `ControlStoreUnavailable`.
        """
        directory.mkdir(mode=0o700, parents=True)
        try:
            with _environment(directory, create=True) as environment:
                environment.open_db(b"tenants")
                environment.open_db(b"keys")
                environment.open_db(b"usage")
                with environment.begin(write=True) as transaction:
                    transaction.put(_MASTER_KEY_KEY, derive(master_key, _MASTER_KEY_LABEL))
                    transaction.put(_FORMAT_KEY, _FORMAT)
        except lmdb.Error as error:
            message = f"the control store in {directory} cannot be made: {error}"
            raise ControlStoreUnavailable(message) from error

    @contextmanager
    def read(self) -> Iterator[Tables]:
        """One consistent view. Raises `ControlStoreUnavailable`."""
        with self._transaction(write=False) as tables:
            yield tables

    @contextmanager
    def write(self) -> Iterator[Tables]:
        """One change, durable when the block ends, undone where it raises.

        Raises `ControlStoreUnavailable`.
        """
        with self._transaction(write=True) as tables:
            yield tables

    def verify_master_key(self, master_key: bytes) -> None:
        """Raises `OperatorError` where the store was made with another master key."""
        with self._opened() as opened, opened.environment.begin() as transaction:
            stored = transaction.get(_MASTER_KEY_KEY) or b""
        if not hmac.compare_digest(stored, derive(master_key, _MASTER_KEY_LABEL)):
            message = f"the master key is not the one that {self._directory.parent} was made with"
            raise OperatorError(message)

    def close(self) -> None:
        """Releases the files; a later use opens them again."""
        with self._lock:
            self._drop()

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Tables]:
        with self._opened() as opened, opened.environment.begin(write=write) as transaction:
            yield Tables(transaction, opened.tenants, opened.keys, opened.usage)

    @contextmanager
    def _opened(self) -> Iterator[_Open]:
        with self._lock:
            try:
                opened = self._current()
            except (lmdb.Error, OSError) as error:
                raise self._failed(error) from error
            try:
                yield opened
            except lmdb.Error as error:
                raise self._failed(error) from error

    def _failed(self, error: Exception) -> ControlStoreUnavailable:
        self._drop()
        return ControlStoreUnavailable(
            f"the control store in {self._directory} is unavailable: {error}"
        )

    def _current(self) -> _Open:
        if self._open is not None:
            file = self._open.path.stat()
            if not self._open.stands_on(file):
                self._drop()
            elif file.st_size > self._open.file.st_size:
                self._open.file = file
        if self._open is None:
            self._open = _Open(self._directory)
        return self._open

    def _drop(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened.environment.close()


def _usage(environment: lmdb.Environment) -> lmdb._Database:
    """The table of usage, which stores made before there was one lack."""
    try:
        return environment.open_db(b"usage", create=False)
    except lmdb.NotFoundError:
        return environment.open_db(b"usage")


def _back_with_file(environment: lmdb.Environment, path: Path) -> None:
    """Makes the file as long as its own head says.

    Reading a mapped page that no file stands behind kills the process. LMDB leaves pages at the
    end unwritten now and then, which is sound; in a file that was cut short the added zeros are
    no page, and LMDB says so.
    """
    size = (environment.info()["last_pgno"] + 1) * mmap.PAGESIZE
    if path.stat().st_size < size:
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, size)


def _check_format(environment: lmdb.Environment, directory: Path) -> None:
    with environment.begin() as transaction:
        if transaction.get(_FORMAT_KEY) != _FORMAT:
            message = f"{directory} holds no control store of this version"
            raise OSError(message)


def _environment(directory: Path, *, create: bool) -> lmdb.Environment:
    return lmdb.open(
        str(directory),
        map_size=_MAP_BYTES,
        subdir=True,
        create=create,
        mode=0o600,
        max_dbs=3,
        max_readers=_READERS_MAX,
    )
