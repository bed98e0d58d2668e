"""A store in one LMDB environment, for short transactions of many threads and processes.

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

import enum
import os
import tempfile
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import lmdb

from fleetcast.lmdb_store.environment import FORMAT_KEY, OpenEnvironment, create_environment
from fleetcast.lmdb_store.faults import problem
from fleetcast.record_store import OWN, RecordsUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

_AHEAD_SECONDS = 5.0  # a writer is done sooner, unless it is stopped
_PROBE_BYTES = 65_536  # LMDB needs some pages to commit anything

Result = TypeVar("Result")


class LmdbUnavailable(RecordsUnavailable):
    """The files cannot be read or written now; the message says why."""


class View(NamedTuple):
    """One transaction and the tables by name; the environment's own table is `None`."""

    transaction: lmdb.Transaction
    tables: Mapping[str, lmdb._Database | None]

    @property
    def version(self) -> int:
        """Number of the last change that is seen here; every change has a higher one."""
        return self.transaction.id()

    def get(self, space: str, key: bytes) -> bytes | None:
        """One value."""
        value = self.transaction.get(key, db=self.tables[space])
        return None if value is None else bytes(value)

    def load(self, space: str, keys: Iterable[bytes]) -> None:
        """Nothing: the map has all values."""

    def put(self, space: str, key: bytes, value: bytes) -> None:
        """Adds or replaces one."""
        self.transaction.put(key, value, db=self.tables[space])

    def delete(self, space: str, key: bytes) -> None:
        """Deletes one, if it is there."""
        self.transaction.delete(key, db=self.tables[space])

    def under(self, space: str, prefix: bytes, first: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin with a prefix, ascending from `first` on, and their values."""
        cursor = self.transaction.cursor(self.tables[space])
        found = cursor.set_range(max(prefix, first))
        while found and bytes(cursor.key()).startswith(prefix):
            yield bytes(cursor.key()), bytes(cursor.value())
            found = cursor.next()

    def count(self, space: str) -> int:
        """Number of records of a table."""
        return self.transaction.stat(self.tables[space])["entries"]

    def drop(self, space: str, *, delete: bool) -> None:
        """Empties a table, and deletes it where that is asked for."""
        table = self.tables[space]
        assert table is not None  # noqa: S101 - the environment's own table stays
        self.transaction.drop(table, delete=delete)


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
        self._open: OpenEnvironment | None = None
        self._due: _Due | None = None
        self._users = 0
        """Transactions that are open, or about to be."""
        self._changed = threading.Condition()

    @property
    def where(self) -> str:
        """The directory."""
        return str(self.directory)

    def create(self, entries: Mapping[bytes, bytes] | None = None) -> None:
        """Makes the empty environment, with `entries` in its own table.

        Raises `OSError`, `LmdbUnavailable`.
        """
        self.directory.mkdir(mode=0o700, parents=True)
        try:
            everything = {**(entries or {}), FORMAT_KEY: self._content}
            create_environment(self.directory, self._tables, everything)
        except lmdb.Error as error:
            raise LmdbUnavailable(problem(error)) from error

    def open_ahead(self) -> None:
        """Opens the files before the first use, which says what fails; gives up after a while.

        LMDB opens tables in a transaction that may write, so a first read would wait for a writer
        of another process, who may be stopped.
        """
        opening = threading.Thread(target=self._look, name="open", daemon=True)
        opening.start()
        opening.join(_AHEAD_SECONDS)

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

    def renew(self) -> bool:
        """False: each view is of the newest change."""
        return False

    def ping(self) -> None:
        """Asks whether it can be read and written, and whether its disk has room for a change.

        It waits for whoever is writing. Raises `OSError`, `LmdbUnavailable` where not.
        """
        with self.transaction(write=True) as view:  # which changes nothing, and so writes nothing
            view.get(OWN, FORMAT_KEY)
        with tempfile.TemporaryFile(dir=self.directory) as file:
            os.posix_fallocate(file.fileno(), 0, _PROBE_BYTES)

    def close(self) -> None:
        """Releases the files when the last transaction has ended; a later use opens them again."""
        with self._changed:
            self._due = _Due.OPEN
            self._changed.wait_for(lambda: self._users == 0)
            self._drop()

    def _look(self) -> None:
        with suppress(LmdbUnavailable):
            self.ask(lambda _view: None)

    def _begin(self, *, write: bool) -> tuple[OpenEnvironment, lmdb.Transaction]:
        """A transaction, which `_leave` must follow. Raises `LmdbUnavailable`."""
        while True:
            opened = self._enter(write=write)
            try:
                return opened, opened.environment.begin(write=write)
            except lmdb.MapResizedError:
                self._leave(_Due.ADOPT)
            except lmdb.Error as error:
                self._leave(_Due.OPEN)
                raise LmdbUnavailable(problem(error)) from error

    def _enter(self, *, write: bool) -> OpenEnvironment:
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
        return LmdbUnavailable(problem(error))

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
                self._open = OpenEnvironment(self.directory, self._tables, self._content)
            elif due is _Due.GROW:
                self._open.grow()
            else:
                self._open.environment.set_mapsize(0)
        except (lmdb.Error, OSError) as error:
            self._drop()
            raise LmdbUnavailable(problem(error)) from error
        finally:
            self._changed.notify_all()

    def _drop(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened.environment.close()
