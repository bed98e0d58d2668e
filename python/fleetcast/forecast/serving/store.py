"""The store of forecasts and of their serving, next to the planes, for all processes.

All records are sealed for their place under the master key. Values of a tenant are sealed under
that tenant's key as well, and end with it.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from fleetcast.engine import KeptForecasts
from fleetcast.errors import RecordsUnavailable
from fleetcast.forecast.serving.clock import Clock, SharedClock
from fleetcast.forecast.serving.tables import (
    FENCE,
    QUOTAS,
    TENANT_TABLES,
    Records,
    due,
    owner,
    rollout_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fleetcast.engine import Records as Store
    from fleetcast.forecast.serving.models import Models
    from fleetcast.forecast.serving.tables import Quota

_SLICE = 1_000
"""Records read in one transaction. The bound limits how long other processes wait."""


class PredictionStoreUnavailable(Exception):
    """The latest-value store cannot be read or written now; the message has the reason."""


class PredictionStore:
    """The store of one installation. Threads may share it. Use it after a fork only."""

    def __init__(
        self,
        records: Store,
        models: Models,
        quotas: Mapping[str, Quota] = QUOTAS,
        clock: Clock | None = None,
    ) -> None:
        self.models = models
        self.clock = Clock() if clock is None else clock
        """The clock of all processes that use the store."""
        own_clock = not isinstance(self.clock, SharedClock)
        self.kept = KeptForecasts(records, self.clock.boot if own_clock else None)
        """The forecasts, for the front."""
        self._store = records
        self._quotas = quotas

    def ensure(self) -> None:
        """Makes missing parts of the store. Raises `OSError`, `PredictionStoreUnavailable`."""

    @contextmanager
    def read(self) -> Iterator[Records]:
        """Yields one consistent view. Raises `PredictionStoreUnavailable`."""
        with self._transaction(write=False) as records:
            yield records

    @contextmanager
    def write(self) -> Iterator[Records]:
        """Yields one change, durable when the block ends, undone if the block raises.

        Raises `PredictionStoreUnavailable`.
        """
        with self._transaction(write=True) as records:
            yield records
            records.settle()

    def lacks_release(self, family: str) -> bool:
        """Returns true if the family never had a release. Raises `PredictionStoreUnavailable`."""
        with self.read() as records:
            return records.get("rollouts", rollout_key(family)) is None

    def has_due(self, now_ns: int) -> bool:
        """Returns true if a forecast can be scored. Raises `PredictionStoreUnavailable`."""
        with self.read() as records:
            first = next(records.under("pending", b""), None)
        return first is not None and first[0] < due(now_ns)

    def ping(self) -> None:
        """Checks that the store can be read and written, and has room for a change.

        The check waits for a write under way. Raises `OSError`, `PredictionStoreUnavailable` if
        not.
        """
        try:
            with self._store.begin(write=True):
                pass
        except RecordsUnavailable as error:
            raise self._unavailable(error) from error

    def take_over(self) -> None:
        """Seals what fleetcast 0.3.0 wrote. Raises `StoreError`."""
        self._store.take_over([FENCE])

    def turn(self) -> bool:
        """Seals all records under the newest master key; returns false if that was done before.

        Raises `PredictionStoreUnavailable`; no record is changed then.
        """
        try:
            return self._store.turn([])
        except RecordsUnavailable as error:
            raise self._unavailable(error) from error

    def check(self) -> None:
        """Checks that every record is the last write to its place.

        Raises `PredictionStoreUnavailable` with the fault.
        """
        try:
            self._store.check()
        except RecordsUnavailable as error:
            raise self._unavailable(error) from error

    def sweep(self, table: str, first: bytes, ended: Callable[[bytes], bool]) -> bytes:
        """Deletes the ended records among the next records from `first` on.

        Returns the key to go on from, empty at the end of the table. Raises
        `PredictionStoreUnavailable`.
        """
        with self.read() as records:
            looked = list(islice(records.under(table, b"", first), _SLICE))
        gone = [key for key, value in looked if ended(value)]
        if gone:
            with self.write() as records:
                for key in gone:
                    value = records.get(table, key)
                    if value is not None and ended(value):  # not renewed since
                        records.delete(table, key)
        return looked[-1][0] + b"\0" if len(looked) == _SLICE else b""

    def forget(self, account_id: str) -> None:
        """Deletes the records of a deleted account. Raises `PredictionStoreUnavailable`."""
        account = account_id.encode()
        for table in TENANT_TABLES:
            # Keys of open scores begin with the instant they are due.
            first = prefix = b"" if table == "pending" else account + b"/"
            keys = [first]
            while keys:
                with self.read() as records:
                    keys = [key for key, _ in islice(records.under(table, prefix, first), _SLICE)]
                self._delete(table, [key for key in keys if owner(table, key) == account])
                first = keys[-1] + b"\0" if keys else b""

    def close(self) -> None:
        """Releases open resources; a later use opens them again."""
        self._store.close()

    def _delete(self, table: str, keys: Iterable[bytes]) -> None:
        with self.write() as records:
            for key in keys:
                records.delete(table, key)

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Records]:
        try:
            with self._store.begin(write=write) as view:
                yield Records(view, self._quotas)
        except RecordsUnavailable as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: RecordsUnavailable) -> PredictionStoreUnavailable:
        message = f"the prediction store {self._store.place} is unavailable: {error}"
        return PredictionStoreUnavailable(message)
