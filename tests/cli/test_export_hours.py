"""`fleetcast export --hours`: the same hours while their rows are there, and after."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import add

import polars as pl
import pytest

HOUR = timedelta(hours=1)
MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
FIRST = MIDNIGHT - timedelta(days=5)
SPAN = ("--start", FIRST.isoformat(), "--end", MIDNIGHT.isoformat())


def records():
    """A row each twenty minutes for two links; the last hour of a link has one row."""
    for minute in range(0, 3000, 20):
        for entity in ("a", "b"):
            yield {
                "measurement": "link",
                "time": (FIRST + timedelta(minutes=minute)).isoformat(),
                "tags": {"entity_id": entity, "site": f"s{minute % 3}"},
                "fields": {"snr": minute % 70 / 10, "up": True, "note": "n", "rain": 0.1},
            }
    alone = FIRST + timedelta(hours=60, minutes=7)
    tags = {"entity_id": "a"}
    yield {"measurement": "link", "time": alone.isoformat(), "tags": tags, "fields": {"snr": -0.0}}
    yield {"measurement": "pool", "time": FIRST.isoformat(), "tags": tags, "fields": {"load": 7.5}}


def expected():
    """Returns what the statistics must be, by measurement, entity, hour and field."""
    found = {}
    for each in sorted(records(), key=lambda each: datetime.fromisoformat(each["time"])):
        time = datetime.fromisoformat(each["time"])
        for name, value in each["fields"].items():
            if isinstance(value, float):
                start = FIRST + (time - FIRST) // HOUR * HOUR
                key = (each["measurement"], each["tags"]["entity_id"], start, name)
                found.setdefault(key, []).append((time, value))
    return {key: figures(samples) for key, samples in found.items()}


def figures(samples):
    values = [value for _, value in samples]
    time, last = samples[-1]
    return len(values), reduce(add, values, 0.0), min(values), max(values), last, time


def statistics(line):
    key = (line["measurement"], line["entity_id"], line["time"], line["field"])
    return key, tuple(line[name] for name in ("count", "sum", "min", "max", "last", "last_time"))


@pytest.fixture
def stored(call, tmp_path):
    call("tenant", "create", "acme")
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in records()))
    call("import", "--tenant", "acme", "--format", "jsonl", file)
    call("compact", "acme")


def exported(call, file, form, *options):
    answer = call("export", "--tenant", "acme", "--format", form, *SPAN, "--hours", *options, file)
    if form == "parquet":
        frame = pl.read_parquet(file)
    elif form == "csv":
        frame = pl.read_csv(file, schema_overrides={"sum": pl.Float64})
    else:
        frame = pl.read_ndjson(file) if file.stat().st_size else pl.DataFrame()
    assert answer["rows"] == frame.height
    times = [pl.col(name).str.to_datetime(time_zone="UTC") for name in ("time", "last_time")]
    return frame if form == "parquet" or not frame.height else frame.with_columns(times)


@pytest.mark.usefixtures("stored")
def test_o7_hours_are_exported_before_and_after_their_rows_expire(call, tmp_path):
    forms = ("jsonl", "csv", "parquet")
    files = [tmp_path / form for form in forms]
    before = [exported(call, file, form) for file, form in zip(files, forms, strict=True)]
    for frame in before:
        assert dict(map(statistics, frame.to_dicts())) == expected()
    keys = [key for key, _ in map(statistics, before[0].to_dicts())]
    assert keys == sorted(expected())
    texts = [file.read_bytes() for file in files]
    call("tenant", "set", "acme", "--retention", "1d", "--keep-hours", "1y")
    call("compact", "acme")
    (tenant,) = call("stats")["tenants"]
    assert (tenant["rows"], tenant["kept_hours"]) == (0, 102)
    for file, form, frame in zip(files, forms, before, strict=True):
        assert exported(call, file, form).equals(frame)
    assert [file.read_bytes() for file in files[:2]] == texts[:2]


@pytest.mark.usefixtures("stored")
def test_hours_of_some_entities_and_measurements(call, tmp_path):
    file = tmp_path / "out"
    one = exported(call, file, "jsonl", "--entity", "a", "--measurement", "pool")
    assert one.select("entity_id", "field", "count", "last").rows() == [("a", "load", 1, 7.5)]
    assert exported(call, file, "jsonl", "--measurement", "nothing").height == 0
    assert exported(call, file, "parquet", "--entity", "nobody").height == 0
