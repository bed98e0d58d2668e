"""Rows that every measured database is to store, in batches."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any

from fleetcast.bench import trucks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.bench.queries import TimedQuery
    from fleetcast.bench.rows import RowNames, SentRow
    from fleetcast.bench.workload_file import WorkloadFile

_WATCHED_BATCHES = 20


@dataclass(frozen=True)
class Workload:
    """Size and seed of the fleet; `joining` is the share of new trucks with each step.

    `warm_up_rows` are written before the clock starts. The load is repeated at most `repeats_max`
    times, until the median of its rate is known to `precision` (0.05 is 5 %). With `rate` in rows
    per second, an open loop follows. With `file`, its rows take the place of the trucks.
    """

    rows: int = 200_000
    batch_rows: int = 1_000
    connections: int = 4
    trucks: int = 500
    joining: float = 0.01
    seed: int = 42
    warm_up_rows: int = 0
    repeats_max: int = 1
    precision: float = 0.05
    rate: float | None = None
    file: WorkloadFile | None = None
    queries: tuple[TimedQuery, ...] = ()

    @property
    def names(self) -> RowNames:
        """Names in the rows."""
        return trucks.NAMES if self.file is None else self.file.names

    @property
    def watched_rows(self) -> int:
        """Rows that are written one batch at a time."""
        return _WATCHED_BATCHES * self.batch_rows

    @property
    def killed_rows(self) -> int:
        """Rows of the load under which the database is killed."""
        return max(self.rows // 4, 4 * self.connections * self.batch_rows)

    @property
    def rows_max(self) -> int:
        """The most rows that are taken from the fleet in all."""
        loads = [self.rows] * (self.repeats_max + (self.rate is not None))
        # Each load has at least one batch.
        loaded = [max(rows, self.batch_rows) for rows in loads]
        return (
            self.warm_up_rows + self.batch_rows + sum(loaded) + self.watched_rows + self.killed_rows
        )

    def fleet(self) -> Iterator[SentRow]:
        """Returns the rows of the fleet, which never end."""
        if self.file is not None:
            return self.file.rows()
        return trucks.Trucks(self.trucks, joining=self.joining, seed=self.seed).rows(trucks.START)

    def batches(self, fleet: Iterator[SentRow], rows: int) -> list[list[SentRow]]:
        """Returns the next rows of the fleet as batches, at least one batch."""
        count = max(rows // self.batch_rows, 1)
        return [list(islice(fleet, self.batch_rows)) for _ in range(count)]

    def document(self) -> dict[str, Any]:
        """Returns the workload as the report has it."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        file = None if self.file is None else self.file.document()
        return found | {"file": file, "queries": [query.document() for query in self.queries]}
