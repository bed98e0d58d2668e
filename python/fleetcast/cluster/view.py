"""One transaction of records in PostgreSQL.

Each question is a round trip. So changes wait for the end of the transaction, and are made
together; a key that was read or changed is not asked for again.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

from fleetcast.errors import StoreError
from fleetcast.record_store import RecordsUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fleetcast.engine import RecordsTransaction

Result = TypeVar("Result")

_FIRST_PAGE = 32
_PAGE_MAX = 1_024


class ClusterView:
    """The records as one transaction sees them."""

    def __init__(self, transaction: RecordsTransaction) -> None:
        self._transaction = transaction
        self._known: dict[str, dict[bytes, bytes | None]] = defaultdict(dict)
        """Values by space and key, as far as this transaction knows them."""
        self._changed: dict[str, set[bytes]] = defaultdict(set)
        """Keys by space whose values in `_known` are not in the database yet."""

    @property
    def version(self) -> int:
        """Number of the last change that is seen here; every change has a higher one."""
        return self._transaction.version

    def get(self, space: str, key: bytes) -> bytes | None:
        """One value."""
        known = self._known[space]
        if key not in known:
            known[key] = asked(self._transaction.get, space, key)
        return known[key]

    def load(self, space: str, keys: Iterable[bytes]) -> None:
        """Reads many values at once, for `get`."""
        known = self._known[space]
        missing = [key for key in keys if key not in known]
        if missing:
            values = asked(self._transaction.get_all, space, missing)
            known.update(zip(missing, values, strict=True))

    def put(self, space: str, key: bytes, value: bytes) -> None:
        """Adds or replaces one."""
        self._change(space, key, value)

    def delete(self, space: str, key: bytes) -> None:
        """Deletes one, if it is there."""
        self._change(space, key, None)

    def under(self, space: str, prefix: bytes, first: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin with a prefix, ascending from `first` on, and their values."""
        self.flush()
        limit = _FIRST_PAGE
        while True:
            page = asked(self._transaction.under, space, prefix, first=first, limit=limit)
            yield from page
            if len(page) < limit:
                return
            first = page[-1][0] + b"\0"
            limit = _PAGE_MAX

    def count(self, space: str) -> int:
        """Number of records of a space."""
        self.flush()
        return asked(self._transaction.count, space)

    def flush(self) -> bool:
        """Makes the changes that wait; true where there were any."""
        changed = {space: keys for space, keys in self._changed.items() if keys}
        for space, keys in changed.items():
            known = self._known[space]
            puts = [(key, value) for key in keys if (value := known[key]) is not None]
            deletes = [key for key in keys if known[key] is None]
            if puts:
                asked(self._transaction.put_all, space, puts)
            if deletes:
                asked(self._transaction.delete_all, space, deletes)
            keys.clear()
        return bool(changed)

    def _change(self, space: str, key: bytes, value: bytes | None) -> None:
        self._known[space][key] = value
        self._changed[space].add(key)


def asked(question: Callable[..., Result], *values: object, **options: object) -> Result:
    """Answer of the database. Raises `RecordsUnavailable`."""
    try:
        return question(*values, **options)
    except StoreError as error:
        raise RecordsUnavailable(str(error)) from error
