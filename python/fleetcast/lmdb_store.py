"""A small LMDB environment that survives what happens to its files.

It is opened on first use, so make an `LmdbStore` before a fork if you like, but use it only after
one. Every read goes to LMDB, so what one process commits, all see with their next read. Where the
files are damaged or gone a use raises `LmdbUnavailable`, and the next use opens them anew.
"""

from __future__ import annotations

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

Answer = TypeVar("Answer")

_MAP_BYTES = 1 << 30  # address space, not disk
_FILE_BYTES_MIN = 2 * mmap.PAGESIZE  # LMDB reads its two head pages before anything else
_READERS_MAX = 1024  # threads of all processes that read at once
_FORMAT_KEY = b"format"


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
        """Whether `file` is still the one that is mapped: a cut file must not be touched."""
        return os.path.samestat(file, self.file) and file.st_size >= self.file.st_size


class LmdbStore:
    """The environment in `directory`, of which `content` names the format. Safe between threads."""

    def __init__(self, directory: Path, tables: tuple[str, ...], content: bytes) -> None:
        self.directory = directory
        self._tables = tables
        self._content = content
        self._open: _Open | None = None
        self._lock = threading.Lock()

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
                    transaction.put(_FORMAT_KEY, self._content)
        except lmdb.Error as error:
            raise LmdbUnavailable(str(error)) from error

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[View]:
        """One consistent view; a change is durable when the block ends, undone where it raises.

        Raises `LmdbUnavailable`.
        """
        with self._lock:
            opened = self._current()
            try:
                with opened.environment.begin(write=write) as transaction:
                    yield View(transaction, opened.tables)
            except lmdb.Error as error:
                raise self._failed(error) from error

    def ask(self, question: Callable[[View], Answer]) -> Answer:
        """What `question` finds in one consistent view.

        For what comes with every request: a context manager costs more than the transaction.
        Raises `LmdbUnavailable`.
        """
        with self._lock:
            opened = self._current()
            try:
                with opened.environment.begin() as transaction:
                    return question(View(transaction, opened.tables))
            except lmdb.Error as error:
                raise self._failed(error) from error

    def close(self) -> None:
        """Releases the files; a later use opens them again."""
        with self._lock:
            self._drop()

    def _failed(self, error: Exception) -> LmdbUnavailable:
        self._drop()
        return LmdbUnavailable(str(error))

    def _current(self) -> _Open:
        """The environment of the files as they are now. Raises `LmdbUnavailable`."""
        try:
            if self._open is not None:
                file = os.stat(self._open.name)  # noqa: PTH116 - with every request
                if not self._open.stands_on(file):
                    self._drop()
                elif file.st_size > self._open.file.st_size:
                    self._open.file = file
            if self._open is None:
                self._open = _Open(self.directory, self._tables, self._content)
        except (lmdb.Error, OSError) as error:
            raise self._failed(error) from error
        return self._open

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
        if transaction.get(_FORMAT_KEY) != content:
            message = f"{directory} holds nothing of this version"
            raise OSError(message)


def _environment(directory: Path, tables: tuple[str, ...], *, create: bool) -> lmdb.Environment:
    return lmdb.open(
        str(directory),
        map_size=_MAP_BYTES,
        subdir=True,
        create=create,
        mode=0o600,
        max_dbs=len(tables),
        max_readers=_READERS_MAX,
    )
