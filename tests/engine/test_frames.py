"""Frames hold what the JSON answers hold, column by column."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest

from fleetcast.engine import Plane, encode_records, format_time

from .strategies import BASE_NS, NOW_NS

SECOND_NS = 1_000_000_000
WEEK_NS = 604_800 * SECOND_NS
FLOATS = (0.0, -0.0, 5e-324, 1 / 3, -1e300, 12.5)


@pytest.fixture
def plane():
    """Three measurements, every type, missing values, odd names, and a merged newest instant."""
    plane = Plane.in_memory("acme")
    for step in range(12):
        plane.write_json(encode_records(records(step)), now_ns=NOW_NS)
    yield plane
    plane.close()


def records(step: int) -> list[dict]:
    time = format_time(BASE_NS + step * 7 * SECOND_NS + 1)
    fields = {"snr_db": FLOATS[step % 6], "up": step % 2 == 0, "mode": ["", "tx", 'é"\n'][step % 3]}
    pool = {"entity_id": "p"}
    present = {name: value for at, (name, value) in enumerate(fields.items()) if step % 4 != at}
    return [
        {"measurement": "link", "time": time, "tags": tags, "fields": present}
        for tags in ({"entity_id": "a", "site": "x"}, {"entity_id": 'é "b"'})
    ] + [
        {"measurement": "link", "time": time, "tags": {"entity_id": "a"}, "fields": {"late": 1.0}},
        {
            "measurement": "pool_interval",
            "time": time,
            "tags": pool,
            "fields": fields,
        },
    ]


def same(frame_value: object, json_value: object) -> bool:
    if isinstance(json_value, float):
        signs = math.copysign(1, frame_value), math.copysign(1, json_value)
        return frame_value == json_value and signs[0] == signs[1]
    return frame_value == json_value


@pytest.mark.parametrize("as_of_ns", [NOW_NS, BASE_NS + 30 * SECOND_NS])
@pytest.mark.parametrize("measurement", ["link", "pool_interval", "nothing"])
def test_a_newest_frame_is_the_topology_answer(plane, measurement, as_of_ns) -> None:
    frame = pl.DataFrame(
        plane.latest_frame(measurement, as_of_ns=as_of_ns, freshness_ns=WEEK_NS, now_ns=NOW_NS)
    )
    answer = json.loads(plane.latest_json(as_of_ns=as_of_ns, freshness_ns=WEEK_NS))
    entities = [e for e in answer["entities"] if e["measurement"] == measurement]
    assert frame.columns[:3] == ["entity_id", "observed_at", "tags"]
    assert frame["entity_id"].to_list() == [entity["entity_id"] for entity in entities]
    times = frame["observed_at"].dt.timestamp("ns").to_list()
    assert list(map(format_time, times)) == [entity["observed_at"] for entity in entities]
    assert list(map(json.loads, frame["tags"])) == [entity["tags"] for entity in entities]
    for entity, row in zip(entities, frame.iter_rows(named=True), strict=True):
        fields = {name: row[name] for name in frame.columns[3:] if row[name] is not None}
        assert fields.keys() == entity["fields"].keys()
        assert all(same(fields[name], entity["fields"][name]) for name in fields)


def test_the_columns_of_a_newest_frame_have_the_types_of_the_fields(plane) -> None:
    frame = pl.DataFrame(plane.latest_frame("pool_interval", as_of_ns=NOW_NS, freshness_ns=WEEK_NS))
    assert frame.schema["observed_at"] == pl.Datetime("ns", "UTC")
    types = {name: frame.schema[name] for name in ("snr_db", "up", "mode")}
    assert types == {"snr_db": pl.Float64, "up": pl.Boolean, "mode": pl.String}


@pytest.mark.parametrize("windows", [{}, {"interval": "15s"}, {"interval": "1m", "agg": "max"}])
@pytest.mark.parametrize("fields", [None, ["snr_db"], ["mode"]])
def test_a_series_frame_is_the_series_answer(plane, windows, fields) -> None:
    query = {
        "entity_ids": ['é "b"', "a", "ghost"],
        "start_ns": BASE_NS,
        "end_ns": BASE_NS + 60 * SECOND_NS,
        "measurement": "link",
        "fields": fields,
        **windows,
    }
    frame = pl.DataFrame(plane.series_frame(**query, now_ns=NOW_NS))
    answer = json.loads(plane.series_json(**query, now_ns=NOW_NS))
    assert frame.columns[:2] == ["entity_id", "time"]
    rows = frame.rows(named=True)
    for entity in answer["series"]:
        own = [row for row in rows if row["entity_id"] == entity["entity_id"]]
        rows = [row for row in rows if row not in own]
        assert len(own) == entity["point_count"]
        frame_times = frame.filter(pl.col("entity_id") == entity["entity_id"])["time"]
        assert list(map(format_time, frame_times.dt.timestamp("ns"))) == entity["times"]
        for name in frame.columns[2:]:
            expected = entity["channels"].get(name, [None] * len(own))
            assert all(same(row[name], value) for row, value in zip(own, expected, strict=True))
        assert entity["channels"].keys() <= set(frame.columns[2:])
    assert rows == []


def test_series_arrays_are_the_series_frame_without_names(plane) -> None:
    query = {
        "entity_ids": ['é "b"', "a", "ghost"],
        "start_ns": BASE_NS,
        "measurement": "link",
        "now_ns": NOW_NS,
    }
    frame = pl.DataFrame(plane.series_frame(**query))
    rows, times, channels = plane.series_arrays(**query)
    assert np.repeat(query["entity_ids"], rows).tolist() == frame["entity_id"].to_list()
    assert np.frombuffer(times, np.int64).tolist() == frame["time"].dt.timestamp("ns").to_list()
    assert list(channels) == frame.columns[2:]
    for name, channel in channels.items():
        assert np.array_equal(np.frombuffer(channel), frame[name].to_numpy(), equal_nan=True)


def test_a_series_frame_reads_any_measurement_and_any_span(plane) -> None:
    frame = pl.DataFrame(
        plane.series_frame(entity_ids=["p"], start_ns=0, measurement="pool_interval", now_ns=NOW_NS)
    )
    assert len(frame) == 12
    expected = [FLOATS[step % 6] for step in range(12)]
    assert all(map(same, frame["snr_db"].to_list(), expected))


def test_a_frame_is_taken_again_and_has_its_schema_beforehand(plane) -> None:
    stream = plane.latest_frame("link", as_of_ns=NOW_NS, freshness_ns=WEEK_NS)
    assert '"arrow_schema"' in repr(stream.__arrow_c_schema__())
    first = pl.DataFrame(stream)
    assert not first.is_empty()
    assert pl.DataFrame(stream).equals(first)
    assert pl.Schema(stream) == first.schema


def test_a_notebook_shows_the_first_rows_of_a_frame() -> None:
    plane = Plane.in_memory("acme")
    time = format_time(BASE_NS)
    for number in range(30):
        tags, fields = {"entity_id": f"l{number}"}, {"mode": "<b>&", "snr_db": 1.5}
        record = {"measurement": "link", "time": time, "tags": tags, "fields": fields}
        plane.write_json(encode_records([record]), now_ns=NOW_NS)
    stream = plane.latest_frame("link", as_of_ns=NOW_NS, freshness_ns=WEEK_NS)
    assert repr(stream) == "ArrowStream(30 rows: entity_id, observed_at, tags, mode, snr_db)"
    html = stream._repr_html_()
    assert html.count("<tr>") == 1 + 20
    first = f'<td>l0</td><td>{time}</td><td>{{"entity_id":"l0"}}</td><td>&lt;b&gt;&amp;</td>'
    assert first in html
    assert html.endswith("<p>30 rows</p>")
