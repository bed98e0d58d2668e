"""LMDB for the control store and the prediction store: small environments of JSON records.

An environment survives the loss or replacement of its files, and grows with its content.

It is opened on first use, so make an `LmdbStore` before a fork if you like, but use it only after
one, and only one of a directory in a process. Every read goes to LMDB, so what one process commits,
all see with their next read. Where the files are damaged or gone a use raises `LmdbUnavailable`,
and the next use opens them anew.

Transactions of several threads go on side by side: a read does not wait for a write, which waits
for the disk and for the writers of other processes. Opening, closing and growing the map do wait
until this process has no transaction open, because LMDB moves or removes the map then.
"""

from __future__ import annotations

import contextlib
import enum
import mmap
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import lmdb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from os import stat_result
    from pathlib import Path

Result = TypeVar("Result")

_MAP_BYTES = 64 << 20  # of a new environment: address space, not disk
_FILE_BYTES_MIN = 2 * mmap.PAGESIZE  # LMDB reads its two head pages before anything else
_READERS_MAX = 1024  # threads of all processes that read at once
_LOCK_BYTES = 64 * (_READERS_MAX - 1) + 192  # as long as LMDB makes the lock file
_BLOCK_BYTES = 512  # the unit of `st_blocks`
FORMAT_KEY = b"format"
"""The key, in the environment's own table, of what names its format."""


class LmdbUnavailable(Exception):
    """The files cannot be read or written now; the message says why."""


class View(NamedTuple):
    """One transaction and the tables by name; the environment's own table is `None`."""

    transaction: lmdb.Transaction
    tables: Mapping[str, lmdb._Database]


class _Open:
    """An open environment and the file it was opened from."""

    def __init__(self, directory: Path, tables: tuple[str, ...], content: bytes) -> None:
        self.path = directory / "data.mdb"
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
            self.tables = {name: _table(self.environment, name) for name in tables}
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


class _Due(enum.Enum):
    """A change of the environment that waits until this process has no transaction open."""

    OPEN = enum.auto()
    GROW = enum.auto()
    """Double the map."""
    ADOPT = enum.auto()
    """Take the size of the map that another process gave it."""


class LmdbStore:
    """The environment in `directory`, of which `content` names the format. Safe between threads."""

    def __init__(self, directory: Path, tables: tuple[str, ...], content: bytes) -> None:
        self.directory = directory
        self._tables = tables
        self._content = content
        self._open: _Open | None = None
        self._due: _Due | None = None
        self._users = 0
        """Transactions that are open, or about to be."""
        self._changed = threading.Condition()

    def create(self, entries: Mapping[bytes, bytes] | None = None) -> None:
        """Makes the empty environment, with `entries` in its own table.

        Raises `OSError`, `LmdbUnavailable`.
        """
        self.directory.mkdir(mode=0o700, parents=True)
        try:
            with _environment(self.directory, self._tables, create=True) as environment:
                for name in self._tables:
                    environment.open_db(name.encode())
                with environment.begin(write=True) as transaction:
                    for key, value in (entries or {}).items():
                        transaction.put(key, value)
                    transaction.put(FORMAT_KEY, self._content)
        except lmdb.Error as error:
            raise LmdbUnavailable(str(error)) from error

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[View]:
        """One consistent view; a change is durable when the block ends, undone where it raises.

        The block must not begin another one. Raises `LmdbUnavailable`.
        """
        opened, begun = self._begin(write=write)
        try:
            with begun as transaction:
                yield View(transaction, opened.tables)
        except lmdb.Error as error:
            raise self._failed(error) from error
        finally:
            self._leave()

    def ask(self, question: Callable[[View], Result]) -> Result:
        """Result of `question`, asked of one consistent view.

        For reads of each request: a context manager costs more than the transaction.
        Raises `LmdbUnavailable`.
        """
        opened, begun = self._begin(write=False)
        try:
            with begun as transaction:
                return question(View(transaction, opened.tables))
        except lmdb.Error as error:
            raise self._failed(error) from error
        finally:
            self._leave()

    def close(self) -> None:
        """Releases the files when the last transaction has ended; a later use opens them again."""
        with self._changed:
            self._due = _Due.OPEN
            self._changed.wait_for(lambda: self._users == 0)
            self._drop()

    def _begin(self, *, write: bool) -> tuple[_Open, lmdb.Transaction]:
        """A transaction, which `_leave` must follow. Raises `LmdbUnavailable`."""
        while True:
            opened = self._enter(write=write)
            try:
                return opened, opened.environment.begin(write=write)
            except lmdb.MapResizedError:
                self._leave(_Due.ADOPT)
            except lmdb.Error as error:
                self._leave(_Due.OPEN)
                raise LmdbUnavailable(str(error)) from error

    def _enter(self, *, write: bool) -> _Open:
        """The environment of the files as they are now. Raises `LmdbUnavailable`."""
        with self._changed:
            while True:
                due = self._due = self._due or self._found(write=write)
                if due is None:
                    assert self._open is not None  # noqa: S101 - otherwise opening it is due
                    self._users += 1
                    return self._open
                if self._users:
                    self._changed.wait()
                else:
                    self._do(due)

    def _leave(self, due: _Due | None = None) -> None:
        with self._changed:
            self._due = self._due or due
            self._users -= 1
            if not self._users:
                self._changed.notify_all()

    def _failed(self, error: lmdb.Error) -> LmdbUnavailable:
        """A full map means no fault of the files: the next use has a larger one."""
        full = isinstance(error, lmdb.MapFullError)
        with self._changed:
            self._due = self._due or (_Due.GROW if full else _Due.OPEN)
        return LmdbUnavailable(str(error))

    def _found(self, *, write: bool) -> _Due | None:
        """The change that the files as they are now ask for."""
        if self._open is None:
            return _Due.OPEN
        try:
            file = os.stat(self._open.name)  # noqa: PTH116 - with every request
        except OSError:
            return _Due.OPEN
        if not self._open.stands_on(file):
            return _Due.OPEN
        if file.st_size > self._open.file.st_size:
            self._open.file = file
        return _Due.GROW if write and self._open.fills() else None

    def _do(self, due: _Due) -> None:
        """Makes the change, which nobody else can at the same time. Raises `LmdbUnavailable`."""
        self._due = None
        try:
            if due is _Due.OPEN or self._open is None:
                self._drop()
                self._open = _Open(self.directory, self._tables, self._content)
            elif due is _Due.GROW:
                self._open.grow()
            else:
                self._open.environment.set_mapsize(0)
        except (lmdb.Error, OSError) as error:
            self._drop()
            raise LmdbUnavailable(str(error)) from error
        finally:
            self._changed.notify_all()

    def _drop(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened.environment.close()


def _table(environment: lmdb.Environment, name: str) -> lmdb._Database:
    """A table, made where an earlier version had none of that name."""
    try:
        return environment.open_db(name.encode(), create=False)
    except lmdb.NotFoundError:
        return environment.open_db(name.encode())


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
