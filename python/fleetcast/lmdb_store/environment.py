"""One open LMDB environment and the files below it, whatever happens to those.

LMDB maps its files. A page that no file stands behind would kill the process, so the files are
made as long as LMDB takes them to be before they are mapped.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import TYPE_CHECKING

import lmdb

from fleetcast.record_store import OWN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import stat_result
    from pathlib import Path

_MAP_BYTES = 64 << 20  # of a new environment: address space, not disk
_FILE_BYTES_MIN = 2 * mmap.PAGESIZE  # LMDB reads its two head pages before anything else
_READERS_MAX = 1024  # threads of all processes that read at once
_LOCK_BYTES = 64 * (_READERS_MAX - 1) + 192  # as long as LMDB makes the lock file
_BLOCK_BYTES = 512  # the unit of `st_blocks`
DATA_FILE = "data.mdb"
"""The file of an environment that holds its content."""
FORMAT_KEY = b"format"
"""The key, in the environment's own table, of what names its format."""


class OpenEnvironment:
    """An open environment and the file it was opened from."""

    def __init__(self, directory: Path, tables: tuple[str, ...], content: bytes) -> None:
        self.path = directory / DATA_FILE
        self.name = str(self.path)
        self.file = self.path.stat()
        if self.file.st_size < _FILE_BYTES_MIN or self.file.st_size % mmap.PAGESIZE:
            message = f"{self.path} is cut short"
            raise OSError(message)
        self.environment = _environment(directory, tables, create=False)
        try:
            _back_with_file(self.environment, self.path)
            self.environment.reader_check()
            _check_format(self.environment, directory, content)
            self.tables: dict[str, lmdb._Database | None] = {
                OWN: None,
                **_open_tables(self.environment, tables),
            }
        except BaseException:
            self.environment.close()
            raise

    def stands_on(self, file: stat_result) -> bool:
        """True while `file` is the one that is mapped: a cut file must not be touched."""
        return os.path.samestat(file, self.file) and file.st_size >= self.file.st_size

    def fills(self) -> bool:
        """True where more than half of the map is used: a write must find room in the rest."""
        info = self.environment.info()
        return 2 * (info["last_pgno"] + 1) * mmap.PAGESIZE > info["map_size"]

    def grow(self) -> None:
        """Doubles the map; the others notice with their next transaction that needs it."""
        # Readers that were killed pin pages that could be used again.
        self.environment.reader_check()
        self.environment.set_mapsize(2 * self.environment.info()["map_size"])


def create_environment(
    directory: Path, tables: tuple[str, ...], entries: Mapping[bytes, bytes]
) -> None:
    """Makes the empty environment, with `entries` in its own table. Raises `lmdb.Error`."""
    with _environment(directory, tables, create=True) as environment:
        _open_tables(environment, tables)
        with environment.begin(write=True) as transaction:
            for key, value in entries.items():
                transaction.put(key, value)


def _open_tables(
    environment: lmdb.Environment, names: tuple[str, ...]
) -> dict[str, lmdb._Database]:
    """Tables by name, made where an earlier version had none of that name.

    LMDB opens them in a transaction that may write. One of `open_db` itself would wait for another
    writer, who may be stopped, without letting other threads of this process run.
    """
    with environment.begin(write=True) as transaction:
        return {name: environment.open_db(name.encode(), txn=transaction) for name in names}


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


def _check_format(environment: lmdb.Environment, directory: Path, content: bytes) -> None:
    with environment.begin() as transaction:
        if transaction.get(FORMAT_KEY) != content:
            message = f"{directory} holds nothing of this version"
            raise OSError(message)


def _reserve_lock_file(path: Path) -> None:
    """Reserves disk space for all bytes of the lock file.

    LMDB leaves holes in it and writes through a map, which on a full disk would end the process.
    A file that has it is left alone: closing any descriptor of it drops the locks of this
    process, and another environment of it may be open here.
    """
    with contextlib.suppress(FileNotFoundError):
        file = path.stat()
        if file.st_size and file.st_blocks * _BLOCK_BYTES >= file.st_size:
            return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # An existing one keeps its length, which tells LMDB how many readers there may be.
        os.posix_fallocate(descriptor, 0, os.fstat(descriptor).st_size or _LOCK_BYTES)
    finally:
        os.close(descriptor)


def _environment(directory: Path, tables: tuple[str, ...], *, create: bool) -> lmdb.Environment:
    _reserve_lock_file(directory / "lock.mdb")
    return lmdb.open(
        str(directory),
        map_size=_MAP_BYTES,
        subdir=True,
        create=create,
        mode=0o600,
        max_dbs=len(tables),
        max_readers=_READERS_MAX,
    )
