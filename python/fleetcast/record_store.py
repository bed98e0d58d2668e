"""Small records under keys in named spaces, as accounts and forecasts ask for them.

Two stores have them: LMDB in the data directory (`lmdb_store`), and PostgreSQL, which many nodes
share (`cluster`). Keys and values are bytes; keys of a space are in the order of their bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

Result = TypeVar("Result")

OWN = ""
"""The space of what a store says of itself, such as its format."""


_NUMBER_BYTES = 8


class RecordsUnavailable(Exception):
    """The records cannot be read or written now; the message says why."""


class RecordView(Protocol):
    """The records as one transaction sees them. No method is of use after its end."""

    @property
    def version(self) -> int:
        """Number of the last change that is seen here; every change has a higher one."""

    def get(self, space: str, key: bytes) -> bytes | None:
        """One value."""

    def load(self, space: str, keys: Iterable[bytes]) -> None:
        """Says which values are about to be asked for, so that a store may get them together."""

    def put(self, space: str, key: bytes, value: bytes) -> None:
        """Adds or replaces one."""

    def delete(self, space: str, key: bytes) -> None:
        """Deletes one, if it is there."""

    def under(self, space: str, prefix: bytes, first: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin with a prefix, ascending from `first` on, and their values."""

    def count(self, space: str) -> int:
        """Number of records of a space."""


class RecordStore(Protocol):
    """Records of one installation. Safe between threads; use it after a fork only."""

    @property
    def where(self) -> str:
        """Place of the records, as errors name it."""

    def open_ahead(self) -> None:
        """Opens what the first use needs; gives up after a while."""

    def transaction(self, *, write: bool) -> AbstractContextManager[RecordView]:
        """One consistent view; a change is durable when the block ends, undone where it raises.

        The block must not begin another one. Raises `RecordsUnavailable`.
        """

    def ask(self, question: Callable[[RecordView], Result]) -> Result:
        """Result of `question`, asked of one consistent view, for reads of each request.

        Raises `RecordsUnavailable`.
        """

    def renew(self) -> bool:
        """Looks for changes that no view has seen yet; true where there may be some.

        Raises `RecordsUnavailable`.
        """

    def ping(self) -> None:
        """Asks whether a change can be made now. Raises `RecordsUnavailable`, `OSError`."""

    def close(self) -> None:
        """Releases what is open; a later use opens it again."""


def count_up(view: RecordView, key: bytes) -> int:
    """A number greater than all that calls with this key have had, of a store's own."""
    number = int.from_bytes(view.get(OWN, key) or b"", "big") + 1
    view.put(OWN, key, number.to_bytes(_NUMBER_BYTES, "big"))
    return number
