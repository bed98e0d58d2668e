"""Records that are read and written in PostgreSQL with each use."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from fleetcast.cluster.view import ClusterView, asked
from fleetcast.engine import Records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleetcast.engine import Cluster
    from fleetcast.record_store import RecordView

Result = TypeVar("Result")

WHERE = "PostgreSQL"


class ClusterRecords:
    """The records of the store `name`; one transaction of it writes at a time, on all nodes."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._records = Records(cluster, name)

    @property
    def where(self) -> str:
        """The database, without its address, which may hold a password."""
        return WHERE

    def open_ahead(self) -> None:
        """Connects with the first use, which says what fails."""

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[RecordView]:
        """One consistent view; a change is durable when the block ends, undone where it raises.

        Raises `RecordsUnavailable`; where that comes with the end, the change may be there.
        """
        begun = asked(self._records.begin, write=write)
        try:
            view = ClusterView(begun)
            yield view
            if write and view.flush():
                asked(begun.commit)
        finally:
            begun.roll_back()

    def ask(self, question: Callable[[RecordView], Result]) -> Result:
        """Result of `question`, asked of one consistent view. Raises `RecordsUnavailable`."""
        with self.transaction(write=False) as view:
            return question(view)

    def renew(self) -> bool:
        """False: each view is of the newest change."""
        return False

    def ping(self) -> None:
        """Asks whether a transaction can write now. Raises `RecordsUnavailable`."""
        with self.transaction(write=True) as view:
            view.get("", b"")

    def close(self) -> None:
        """Connections are the process's and end with it."""
