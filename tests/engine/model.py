"""The contract's storage and read rules in plain Python, as slow and as plain as can be.

It is the second opinion of the property tests, so it shares no code with the engine. Records are
dicts with `measurement`, `time_ns`, `tags` and `fields`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime

YEAR_2000_NS = 946_684_800_000_000_000
SECOND_NS = 1_000_000_000
INTERVALS_NS = {
    "15s": 15 * SECOND_NS,
    "30s": 30 * SECOND_NS,
    "1m": 60 * SECOND_NS,
    "5m": 300 * SECOND_NS,
    "15m": 900 * SECOND_NS,
    "1h": 3600 * SECOND_NS,
}


def format_time(time_ns: int) -> str:
    """Decisions D7: UTC `Z` with 0, 3, 6 or 9 fractional digits."""
    seconds, nanos = divmod(time_ns, SECOND_NS)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    if nanos:
        digits = f"{nanos:09d}"
        while digits.endswith("000"):
            digits = digits[:-3]
        text += "." + digits
    return text + "Z"


SAMPLE_BYTES_MAX = 1 << 20


@dataclass
class Newest:
    """The rows of an entity's newest instant (F6, N5).

    Each keeps what no later one replaced. While those behind the first have 1 MiB, it goes.
    """

    time_ns: int
    rows: list[dict] = field(default_factory=list)

    def add(self, record: dict) -> None:
        for row in self.rows:
            for name in record["fields"]:
                row["fields"].pop(name, None)
            if row["tags"] == record["tags"]:
                row["tags"] = {}
        self.rows.append({"tags": dict(record["tags"]), "fields": dict(record["fields"])})
        while sum(map(_row_bytes, self.rows[1:])) >= SAMPLE_BYTES_MAX:
            del self.rows[0]

    def merged(self, part: str) -> dict:
        return {name: value for row in self.rows for name, value in row[part].items()}


def _row_bytes(row: dict) -> int:
    tags = sum(len((key + value).encode()) for key, value in row["tags"].items())
    return tags + sum(map(_value_bytes, row["fields"].values()))


def _value_bytes(value: object) -> int:
    if isinstance(value, str):
        return len(value.encode())
    return 1 if isinstance(value, bool) else 8


@dataclass
class Model:
    """Everything accepted so far, in write order."""

    tenant_key: str
    records: list[dict] = field(default_factory=list)
    types: dict[tuple[str, str], type] = field(default_factory=dict)

    def write(self, records: list[dict], now_ns: int) -> list[int] | None:
        """Rejected indices, or `None` where the batch is refused for a type conflict."""
        rejected = []
        accepted = []
        types = dict(self.types)
        for index, record in enumerate(records):
            if not record["fields"] or record["time_ns"] < YEAR_2000_NS:
                rejected.append(index)
                continue
            fields = {}
            for name, value in record["fields"].items():
                kind = float if type(value) is int else type(value)
                if types.setdefault((record["measurement"], name), kind) is not kind:
                    return None
                fields[name] = kind(value)
            tags = dict(record["tags"])
            for name in ("tenant", "tenant_id", "tenant_key"):
                if name in tags:
                    tags[name] = self.tenant_key
            time_ns = min(record["time_ns"], now_ns)
            accepted.append({**record, "time_ns": time_ns, "tags": tags, "fields": fields})
        self.types = types
        self.records += accepted
        return rejected

    def keep_from(self, start_ns: int) -> Model:
        """The rows left when retention hides older ones."""
        kept = [record for record in self.records if record["time_ns"] >= start_ns]
        return Model(self.tenant_key, kept, self.types)

    def delete(
        self,
        start_ns: int,
        end_ns: int,
        measurements: list[str] | None = None,
        entities: list[str] | None = None,
    ) -> int:
        """Forgets the rows of a range; their number."""

        def is_hit(record: dict) -> bool:
            return (
                start_ns <= record["time_ns"] < end_ns
                and (measurements is None or record["measurement"] in measurements)
                and (entities is None or record["tags"].get("entity_id") in entities)
            )

        before = len(self.records)
        self.records = [record for record in self.records if not is_hit(record)]
        return before - len(self.records)

    def latest(self, as_of_ns: int, freshness_ns: int, measurement: str | None) -> dict:
        """The answer of `GET /topology` (G1 to G4, F6)."""
        newest: dict[tuple[str, str], Newest] = {}
        for record in self.records:
            entity_id = record["tags"].get("entity_id")
            if not entity_id or measurement not in (None, record["measurement"]):
                continue
            if not as_of_ns - freshness_ns <= record["time_ns"] < as_of_ns:
                continue
            key = (record["measurement"], entity_id)
            if key not in newest or record["time_ns"] > newest[key].time_ns:
                newest[key] = Newest(record["time_ns"])
            if record["time_ns"] == newest[key].time_ns:
                newest[key].add(record)
        order = sorted(newest, key=lambda key: (key[0].encode(), key[1].encode()))
        entities = [
            {
                "measurement": key[0],
                "entity_id": key[1],
                "observed_at": format_time(newest[key].time_ns),
                "tags": newest[key].merged("tags"),
                "fields": newest[key].merged("fields"),
            }
            for key in order
        ]
        as_of_utc = format_time(as_of_ns)
        return {"as_of_utc": as_of_utc, "tenant_key": self.tenant_key, "entities": entities}

    def series(  # noqa: PLR0913 - as in the contract
        self,
        entity_ids: list[str],
        start_ns: int,
        end_ns: int,
        measurement: str,
        fields: list[str] | None = None,
        interval: str | None = None,
        agg: str | None = None,
        *,
        point_budget: int = 10_000,
        answer_values_max: int = 1_000_000,
    ) -> dict:
        """The answer of `GET /topology/series` (F4, F5, H9 to H15, H23, H25, N4)."""
        ids = list(dict.fromkeys(entity_ids))
        rows = {}
        for entity_id in ids:
            samples = [
                (record["time_ns"], _channels(record["fields"], fields))
                for record in self.records
                if record["measurement"] == measurement
                and record["tags"].get("entity_id") == entity_id
                and start_ns <= record["time_ns"] < end_ns
            ]
            if interval is None:
                rows[entity_id] = _raw_rows(samples)
            else:
                rows[entity_id] = _window_rows(samples, INTERVALS_NS[interval], agg or "mean")
        next_start = _cut(rows, point_budget, answer_values_max)
        return {
            "measurement": measurement,
            "start": format_time(start_ns),
            "end": format_time(end_ns),
            "interval": interval,
            "agg": (agg or "mean") if interval else None,
            "series": [_entity(entity_id, rows[entity_id]) for entity_id in ids],
            "truncated": next_start is not None,
            "next_start": None if next_start is None else format_time(next_start),
        }


def _channels(fields: dict, wanted: list[str] | None) -> dict[str, float]:
    return {
        name: value
        for name, value in fields.items()
        if type(value) is float and (not wanted or name in wanted)
    }


def _raw_rows(samples: list[tuple[int, dict]]) -> list[tuple[int, dict]]:
    rows: list[tuple[int, dict]] = []
    for time_ns, channels in sorted(samples, key=lambda sample: sample[0]):
        if not channels:
            continue
        if rows and rows[-1][0] == time_ns and not rows[-1][1].keys() & channels.keys():
            rows[-1][1].update(channels)
        else:
            rows.append((time_ns, dict(channels)))
    return rows


def _window_rows(samples: list, interval_ns: int, agg: str) -> list[tuple[int, dict]]:
    windows: dict[int, dict[str, list]] = {}
    for order, (time_ns, channels) in enumerate(samples):
        for name, value in channels.items():
            window = windows.setdefault(time_ns // interval_ns, {})
            window.setdefault(name, []).append((time_ns, order, value))
    fold = {
        "mean": lambda cells: math.fsum(cell[2] for cell in cells) / len(cells),
        # -0.0 is below 0.0, so that no result depends on an order.
        "min": lambda cells: min((cell[2] for cell in cells), key=_total),
        "max": lambda cells: max((cell[2] for cell in cells), key=_total),
        "last": lambda cells: max(cells)[2],
    }[agg]
    return [
        (window * interval_ns, {name: fold(cells) for name, cells in windows[window].items()})
        for window in sorted(windows)
    ]


def _total(value: float) -> tuple[float, float]:
    return value, math.copysign(1, value)


def _values(rows: list[tuple[int, dict]]) -> int:
    """N4: times and nulls count."""
    return len(rows) * (1 + len({name for _, channels in rows for name in channels}))


def _cut(rows: dict[str, list], points_max: int, values_max: int) -> int | None:
    """Leaves in `rows` what an answer may hold; where the next one begins."""

    def fits(kept: dict[str, list]) -> bool:
        points = sum(map(len, kept.values()))
        return points <= points_max and sum(map(_values, kept.values())) <= values_max

    if fits(rows):
        return None
    times = sorted({time_ns for entity in rows.values() for time_ns, _ in entity})
    for cut in reversed(times[1:]):
        kept = {name: [row for row in entity if row[0] < cut] for name, entity in rows.items()}
        if fits(kept):
            rows.update(kept)
            return cut
    left_out = _cut_to_instant(rows, times[0], points_max, values_max)
    if left_out:
        return times[0] + 1
    return times[1] if len(times) > 1 else None


def _cut_to_instant(rows: dict[str, list], time_ns: int, points_max: int, values_max: int) -> bool:
    """Leaves first rows of that time, then further ones that fit; true where some do not."""
    instant = {name: [row for row in entity if row[0] == time_ns] for name, entity in rows.items()}
    for name, found in instant.items():
        rows[name] = found[: min(1, points_max)]
        points_max -= len(rows[name])
        values_max -= _values(rows[name])
    for name, found in instant.items():
        for count in range(len(rows[name]), len(found)):
            more = _values(found[: count + 1]) - _values(found[:count])
            if points_max == 0 or more > values_max:
                break
            rows[name] = found[: count + 1]
            points_max -= 1
            values_max -= more
    return any(len(rows[name]) < len(found) for name, found in instant.items())


def _entity(entity_id: str, rows: list[tuple[int, dict]]) -> dict:
    names = sorted({name for _, channels in rows for name in channels})
    return {
        "entity_id": entity_id,
        "times": [format_time(time_ns) for time_ns, _ in rows],
        "channels": {name: [channels.get(name) for _, channels in rows] for name in names},
        "point_count": len(rows),
    }
