"""Writes batches to a data plane, and finds the records that a refusal is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.errors import Refused
from fleetcast.transfer import refusals
from fleetcast.transfer.batches import Rejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.config.sections import Limits
    from fleetcast.engine import Plane, WriteResult
    from fleetcast.transfer.batches import Cursor
    from fleetcast.transfer.report import Report
    from fleetcast.transfer.tables import RecordBatch


class Importer:
    """Writes batches into one plane.

    `reject` is called with line, reason and text of each record that cannot be written. `cursor`
    returns the value to store with the batches of a file.
    """

    def __init__(
        self,
        report: Report,
        limits: Limits,
        reject: Callable[[int, str, str], object],
        cursor: Callable[[], Cursor | None],
    ) -> None:
        self.write_id: str | None = None
        self.last: int | None = None
        """Line on which the last batch since `begin` ended."""
        self._report = report
        self._limits = limits
        self._reject = reject
        self._cursor = cursor

    def begin(self) -> None:
        """Forgets the last batch."""
        self.last = None

    def write(self, plane: Plane, batch: RecordBatch) -> None:
        """Writes every record that can be written.

        A refusal that names records costs these records. Otherwise the batch is halved, until a
        half is taken or a single record is refused. Example: one bad record among 1,000 that the
        refusal does not name takes about 20 writes. Raises `StoreError`.
        """
        while True:
            try:
                result = batch.write(plane, self._cursor(), **self._limits.of_batch)
            except Rejected as rejected:
                faults = rejected.args[0]
            except Refused as refusal:
                faults = refusals.faults(refusal, batch)
                if not faults and len(batch) > 1:
                    middle = len(batch) // 2
                    self.write(plane, batch.part(0, middle))
                    batch = batch.part(middle, len(batch))
                    continue
                faults = faults or {0: refusals.reason(refusal)}
            else:
                self._accept(batch, result)
                return
            for index, reason in sorted(faults.items()):
                self._reject(batch.line(index), reason, batch.text(index))
            batch = batch.without(faults.keys())
            if len(batch) == 0:
                return

    def _accept(self, batch: RecordBatch, result: WriteResult) -> None:
        report = self._report
        self.write_id = result.write_id
        self.last = batch.last
        report.accepted += result.accepted_count
        report.no_entity += result.no_entity_count
        report.other_measurement += result.other_measurement_count
        report.clamped += result.clamped_count
        for position in result.rejected_indices:
            index = position - batch.first
            has_fields = batch.has_fields(index)
            reason = "time: before 2000-01-01T00:00:00Z" if has_fields else "fields: missing"
            self._reject(batch.line(index), reason, batch.text(index))
