"""A workload of one's own: the rows of a file, with times moved so that the last row is of now."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetcast.bench.record_lines import records
from fleetcast.bench.rows import ENTITY, NS_PER_SECOND, RowNames, SentRow
from fleetcast.engine import MEASUREMENTS, parse_time
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from fleetcast.bench.record_lines import FileRecord

# Tags that name the entity; the first that a record has. TSBS has `name` in "iot", and `hostname`.
_ENTITY_TAGS = (ENTITY, "name", "hostname", "host")
_NAMES_MAX = 1_000  # of tags, and of fields of a measurement; PostgreSQL has 1,600 columns
_FIRST_NS = parse_time("2000-01-01T00:00:00Z")


@dataclass(frozen=True)
class WorkloadFile:
    """A file that was read once, as far as its rows are needed."""

    path: Path
    names: RowNames
    stored_as: Mapping[str, str]
    """The measurement under which rows of a measurement of the file are stored."""
    rows_count: int
    """Rows that the file gives each time that it is read."""
    first_ns: int
    last_ns: int
    end_ns: int
    """The time of the last row."""
    rows_max: int
    """Rows that are needed. The file is read again until there are as many."""
    left_out: Mapping[str, int]

    @property
    def moved_ns(self) -> int:
        """Nanoseconds that are added to the times of the file when it is read first."""
        again = math.ceil(self.rows_max / self.rows_count) - 1
        return self.end_ns - self.last_ns - again * self._period_ns

    @property
    def _period_ns(self) -> int:
        return self.last_ns - self.first_ns + NS_PER_SECOND

    def rows(self) -> Iterator[SentRow]:
        """Yields rows without end. Each time that the file is read again, its rows are later.

        Raises `OSError`, and `OperatorError` if the file has other rows than before.

        Example: a file with rows of 10:00:00 to 10:59:59 is read twice at 15:00:00. The rows are of
        13:00:01 to 14:00:00, and then of 14:00:01 to 15:00:00.
        """
        for time in itertools.count():
            moved_ns = self.moved_ns + time * self._period_ns
            rows = 0
            for row in itertools.islice(_kept(records(self.path), Counter()), self.rows_count):
                if row.measurement not in self.stored_as:
                    break
                stored_as = self.stored_as[row.measurement]
                yield row._replace(measurement=stored_as, time_ns=row.time_ns + moved_ns)
                rows += 1
            if rows < self.rows_count:
                raise _fault(self.path, "was changed while it was read")

    def document(self) -> dict[str, object]:
        """Returns the file as the report has it."""
        return {
            "name": self.path.name,
            "rows": self.rows_count,
            "seconds": (self.last_ns - self.first_ns) / NS_PER_SECOND,
            "stored_as": dict(self.stored_as),
            "left_out": dict(self.left_out),
        }


def read_once(path: Path, rows_max: int, now_ns: int) -> WorkloadFile:
    """Reads as many rows of a file as are needed, to know their names and times.

    Raises `OSError`. Raises `OperatorError` if a record cannot be read, or no row can be written.
    """
    if not path.is_file():
        raise _fault(path, "is no file that can be read twice")
    left_out: Counter[str] = Counter()
    tags: dict[str, None] = {ENTITY: None}
    fields: dict[str, dict[str, None]] = {}
    rows, first_ns, last_ns = 0, math.inf, -math.inf
    for row in itertools.islice(_kept(records(path), left_out), rows_max):
        of_measurement = fields.setdefault(row.measurement, {})
        tags.update((name, None) for name, _ in row.tags)
        of_measurement.update((name, None) for name, _ in row.fields)
        if max(len(tags), len(of_measurement)) > _NAMES_MAX:
            raise _fault(path, f"has more than {_NAMES_MAX:,} names of tags, or of fields")
        if len(fields) > len(MEASUREMENTS):
            raise _fault(path, f"has more than {len(MEASUREMENTS)} measurements")
        rows, first_ns, last_ns = rows + 1, min(first_ns, row.time_ns), max(last_ns, row.time_ns)
    if not rows:
        why = "".join(f"; {count:,} {name}" for name, count in left_out.items())
        raise _fault(path, f"has no row that can be written{why}")
    stored_as = _stored_as(fields)
    file = WorkloadFile(
        path=path,
        names=RowNames({stored_as[name]: tuple(fields[name]) for name in fields}, tuple(tags)),
        stored_as=stored_as,
        rows_count=rows,
        first_ns=int(first_ns),
        last_ns=int(last_ns),
        end_ns=now_ns,
        rows_max=rows_max,
        left_out=left_out,
    )
    if file.first_ns + file.moved_ns < _FIRST_NS:
        raise _fault(path, "its rows span so long that some would be older than the year 2000")
    return file


def _kept(found: Iterable[FileRecord | None], left_out: Counter[str]) -> Iterator[SentRow]:
    """Yields the records that can be written as rows, and counts those that cannot."""
    # Two rows of one entity and time would have no order on several connections.
    known = set()
    for record in found:
        if record is None:
            left_out["rows without fields, or older than the year 2000"] += 1
            continue
        left_out["fields that are no numbers"] += record.other_fields
        entity = next((name for name in _ENTITY_TAGS if record.tags.get(name)), None)
        if entity is None:
            left_out["rows without an entity"] += 1
            continue
        if not record.numbers:
            left_out["rows without a number"] += 1
            continue
        key = hash((record.measurement, record.tags[entity], record.time_ns))
        if key in known:
            left_out["rows of a time that was there before"] += 1
            continue
        known.add(key)
        rest = [(name, value) for name, value in record.tags.items() if name != entity and value]
        named = [(ENTITY, record.tags[entity]), *rest]
        yield SentRow(record.measurement, record.time_ns, named, [*record.numbers.items()])


def _stored_as(measurements: Iterable[str]) -> dict[str, str]:
    """Gives a measurement that the service does not read by name one of the six names.

    Example: TSBS's `readings` and `diagnostics` are stored as `telemetry` and `attenuation`.
    """
    free = [name for name in reversed(MEASUREMENTS) if name not in measurements]
    return {name: name if name in MEASUREMENTS else free.pop(0) for name in measurements}


def _fault(path: Path, problem: str) -> OperatorError:
    return OperatorError(f"{path} {problem}")
