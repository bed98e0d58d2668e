"""Records that a process keeps in memory, for questions of each request.

The database keeps them; a process asks it twice a second if there is anything new. While it cannot
be reached, the records are as they were.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fleetcast.cluster.records import WHERE
from fleetcast.cluster.view import asked
from fleetcast.engine import Records
from fleetcast.record_store import RecordsUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fleetcast.engine import Cluster
    from fleetcast.record_store import RecordView

Result = TypeVar("Result")

_ROUND_SECONDS = 0.5  # with the round trip and a moment to read, a change is known within a second

logger = logging.getLogger(__name__)

Spaces = dict[str, dict[bytes, bytes]]


class _Records(NamedTuple):
    """All records at one version; nobody changes them."""

    version: int
    spaces: Mapping[str, Mapping[bytes, bytes]]


_NOTHING: Mapping[bytes, bytes] = {}


class MemoryView:
    """Records in memory, and the changes of one transaction above them."""

    def __init__(self, state: _Records) -> None:
        self.version = state.version
        self._spaces = state.spaces
        self.changes: dict[str, dict[bytes, bytes | None]] = {}

    def get(self, space: str, key: bytes) -> bytes | None:
        """One value."""
        changes = self.changes.get(space)
        if changes is not None and key in changes:
            return changes[key]
        return self._spaces.get(space, _NOTHING).get(key)

    def load(self, space: str, keys: Iterable[bytes]) -> None:
        """Nothing: all values are here."""

    def put(self, space: str, key: bytes, value: bytes) -> None:
        """Adds or replaces one."""
        self.changes.setdefault(space, {})[key] = value

    def delete(self, space: str, key: bytes) -> None:
        """Deletes one, if it is there."""
        self.changes.setdefault(space, {})[key] = None

    def under(self, space: str, prefix: bytes, first: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin with a prefix, ascending from `first` on, and their values."""
        for key, value in self._all(space).items():
            if key >= first and key.startswith(prefix):
                yield key, value

    def count(self, space: str) -> int:
        """Number of records of a space."""
        return len(self._all(space))

    def _all(self, space: str) -> Mapping[bytes, bytes]:
        """Records of a space in the order of their keys."""
        held = self._spaces.get(space, _NOTHING)
        changes = self.changes.get(space)
        if not changes:
            return held
        merged = {**held, **changes}
        return {key: value for key in sorted(merged) if (value := merged[key]) is not None}


class RecordReplica:
    """The records of the store `name`, in memory. Safe to share between threads.

    With `follow` a thread asks for news; without it each transaction does.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        *,
        follow: bool,
        news: Callable[[int], None] | None = None,
    ) -> None:
        self._records = Records(cluster, name)
        self._follow = follow
        self._news = news
        self._state: _Records | None = None
        self._lock = threading.Lock()
        """Held by whoever replaces the state."""
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def where(self) -> str:
        """The database, without its address, which may hold a password."""
        return WHERE

    def open_ahead(self) -> None:
        """Begins to ask for news."""
        with self._lock:
            if self._follow and self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="replica", daemon=True)
                self._thread.start()

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[RecordView]:
        """One consistent view; a change is durable when the block ends, undone where it raises.

        Raises `RecordsUnavailable`; where that comes with the end, the change may be there.
        """
        if not write:
            yield MemoryView(self._current())
            return
        begun = asked(self._records.begin, write=True)
        try:
            view = MemoryView(self.refresh())  # nobody else can change anything now
            yield view
            if view.changes:
                for space, changes in view.changes.items():
                    puts = [(key, value) for key, value in changes.items() if value is not None]
                    deletes = [key for key, value in changes.items() if value is None]
                    if puts:
                        asked(begun.put_all, space, puts)
                    if deletes:
                        asked(begun.delete_all, space, deletes)
                asked(begun.commit)
        finally:
            begun.roll_back()
        with suppress(RecordsUnavailable):  # it is done; whoever looks next asks again
            self.refresh()

    def ask(self, question: Callable[[RecordView], Result]) -> Result:
        """Result of `question`, asked of one consistent view. Raises `RecordsUnavailable`."""
        return question(MemoryView(self._current()))

    def renew(self) -> bool:
        """Asks for news; true, as some may have come before that. Raises `RecordsUnavailable`."""
        self.refresh()
        return True

    def refresh(self) -> _Records:
        """The records as they are in the database now. Raises `RecordsUnavailable`."""
        with self._lock:
            state = self._state
            found = asked(self._records.newer, -1 if state is None else state.version)
            if found is None:
                assert state is not None  # noqa: S101 - no store has that version
                return state
            version, records = found
            spaces: Spaces = {}
            for space, key, value in records:
                spaces.setdefault(space, {})[key] = value
            self._state = _Records(version, spaces)
            if self._news is not None:
                self._news(version)
            return self._state

    def ping(self) -> None:
        """Asks the database. Raises `RecordsUnavailable`."""
        self.refresh()

    def close(self) -> None:
        """Asks for no more news."""
        self._stopped.set()

    def _current(self) -> _Records:
        state = self._state
        if state is not None and self._follow:
            return state
        return self.refresh()

    def _run(self) -> None:
        while not self._stopped.wait(_ROUND_SECONDS):
            try:
                self.refresh()
            except RecordsUnavailable as error:
                logger.debug("accounts are as they were: %s", error)
            except BaseException:  # a panic of the engine is no Exception, and must not end this
                logger.exception("accounts are as they were")
