"""Rows out of columns are those of the same records in JSON, and a scan comes back whole."""

from __future__ import annotations

import struct

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.engine import Plane, encode_records
from fleetcast.errors import Refused

from .model import SECOND_NS, YEAR_2000_NS
from .strategies import BASE_NS, NOW_NS, batches
from .test_properties import TENANT, to_body
from .test_scan import EVER, by_instant, record, rows_of

KINDS = {float: ("float", pl.Float64), bool: ("bool", pl.Boolean), str: ("text", pl.String)}
TAGS = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))


def frame_of(records: list[dict]) -> pl.DataFrame:
    """Records in the schema of a scan, each field with its type in its name."""
    columns: dict[str, list] = {}
    types = {}
    for at, item in enumerate(records):
        for name, value in item["fields"].items():
            kind, dtype = KINDS[float if type(value) is int else type(value)]
            column = columns.setdefault(f"{name}:{kind}", [None] * len(records))
            types[f"{name}:{kind}"] = dtype
            column[at] = float(value) if dtype == pl.Float64 else value
    tags = [[{"key": k, "value": v} for k, v in item["tags"].items()] for item in records]
    times = pl.Series("time", [item["time_ns"] for item in records], dtype=pl.Int64)
    series = [
        times.cast(pl.Datetime("ns", "UTC")),
        pl.Series("measurement", [r["measurement"] for r in records], dtype=pl.String),
        pl.Series("tags", tags, dtype=TAGS),
    ]
    series += [pl.Series(name, column, dtype=types[name]) for name, column in columns.items()]
    return pl.DataFrame(series)


def outcome(write) -> tuple:
    """Counts of a write, or the words of its refusal."""
    try:
        results = write()
    except Refused as refused:
        return refused.args
    return (
        sum(result.accepted_count for result in results),
        [index for result in results for index in result.rejected_indices],
        sum(result.clamped_count for result in results),
    )


@given(
    written=st.lists(batches, max_size=5),
    compacted=st.lists(st.booleans(), min_size=5, max_size=5),
    through_a_frame=st.booleans(),
)
def test_a_scan_written_anew_is_the_same_bit_for_bit(written, compacted, through_a_frame) -> None:
    plane, copy = Plane.in_memory(TENANT), Plane.in_memory(TENANT)
    for records, compact in zip(written, compacted, strict=False):
        outcome(lambda records=records: [plane.write_json(to_body(records), now_ns=NOW_NS)])
        if compact:
            plane.compact(whole=True, now_ns=NOW_NS)
    stream = plane.scan(*EVER, now_ns=NOW_NS)
    source = pl.DataFrame(stream) if through_a_frame else stream
    results = list(copy.write_arrow(source, now_ns=NOW_NS))
    frame = pl.DataFrame(plane.scan(*EVER, now_ns=NOW_NS))
    assert sum(result.accepted_count for result in results) == len(frame)
    assert all(result.rejected_indices == [] for result in results)
    again = pl.DataFrame(copy.scan(*EVER, now_ns=NOW_NS))
    assert again.schema == frame.schema
    assert by_instant(rows_of(again)) == by_instant(rows_of(frame))
    query = {"as_of_ns": NOW_NS, "freshness_ns": 7200 * SECOND_NS, "now_ns": NOW_NS}
    found = [by_entity(other.latest_frame("link", **query)) for other in (plane, copy)]
    assert found[0] == found[1], "the newest rows are those that were written last"


def by_entity(stream: object) -> dict:
    frame = pl.DataFrame(stream)
    rows = frame.select(sorted(frame.columns)).iter_rows(named=True)
    return {row["entity_id"]: repr(row) for row in rows}


@given(written=st.lists(batches, min_size=1, max_size=4))
def test_columns_follow_the_rules_of_json(written) -> None:
    """Acceptance, rejection and clamping of each row, and type conflicts, within and across."""
    of_json, of_columns = Plane.in_memory(TENANT), Plane.in_memory(TENANT)
    for records in written:
        expected = outcome(lambda r=records: [of_json.write_json(to_body(r), now_ns=NOW_NS)])
        frame = frame_of(records)
        found = outcome(lambda f=frame: list(of_columns.write_arrow(f, now_ns=NOW_NS)))
        assert found == expected
    frames = [pl.DataFrame(plane.scan(*EVER, now_ns=NOW_NS)) for plane in (of_json, of_columns)]
    assert by_instant(rows_of(frames[0])) == by_instant(rows_of(frames[1]))
    assert of_json.stats().values == of_columns.stats().values


GOOD = {"measurement": "link", "time_ns": BASE_NS, "tags": {"entity_id": "a"}, "fields": {"x": 1.0}}
BAD = [
    {"measurement": ""},
    {"tags": {"": "x"}},
    {"tags": {f"t{at}": "x" for at in range(65)}},
    {"fields": {"x": "text"}},
    {"fields": {f"f{at}": 1.0 for at in range(4097)}},
    {"fields": {}},
    {"time_ns": YEAR_2000_NS - 1},
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: next(iter(bad)))
@pytest.mark.parametrize("at", [0, 2])
def test_a_row_is_refused_or_rejected_as_in_json(bad, at) -> None:
    records = [dict(GOOD) for _ in range(3)]
    records[at] |= bad
    of_json, of_columns = Plane.in_memory(TENANT), Plane.in_memory(TENANT)
    expected = outcome(lambda: [of_json.write_json(to_body(records), now_ns=NOW_NS)])
    frame = frame_of(records)
    assert outcome(lambda: list(of_columns.write_arrow(frame, now_ns=NOW_NS))) == expected
    assert of_json.stats().rows == of_columns.stats().rows


def test_bounds_of_the_store_hold() -> None:
    plane = Plane.in_memory(TENANT)
    frame = frame_of([GOOD | {"tags": {"entity_id": str(at)}} for at in range(3)])
    for bound in ({"tenant_series_max": 2}, {"tenant_fields_max": 0}, {"tags_max": 0}):
        with pytest.raises(Refused, match="invalid_input"):
            list(plane.write_arrow(frame, **bound))
    assert plane.stats().series == plane.stats().rows == 0


def test_every_type_of_column_becomes_a_field() -> None:
    times = [BASE_NS // SECOND_NS + at for at in range(6)]
    numbers = [0, 1, None, 3, -1, 127]
    columns = {
        kind: pl.Series(numbers, dtype=getattr(pl, kind))
        for kind in ("Int8", "Int16", "Int32", "Int64", "Float32", "Float64")
    }
    columns |= {
        kind: pl.Series([0, 1, None, 3, 4, 255], dtype=getattr(pl, kind))
        for kind in ("UInt8", "UInt16", "UInt32", "UInt64")
    }
    columns |= {
        "bool": pl.Series([True, False, None, True, True, False]),
        "text": pl.Series(["", "é", None, "x" * 13, "x" * 12, "\0"]),
        "category": pl.Series(["a", "b", None, "a", "a", "b"], dtype=pl.Categorical),
        "extremes": pl.Series([2**63 - 1, -(2**63), None, 2**53 + 1, 0, 0], dtype=pl.Int64),
        "greatest": pl.Series([2**64 - 1, 2**63, None, 0, 0, 0], dtype=pl.UInt64),
        "nothing": pl.Series([None] * 6),
    }
    frame = pl.DataFrame({"t": times, "id": range(6)} | columns)
    mapping = {"time": "t", "time_unit": "s", "measurement": "link", "entity": "id"}
    for start in (0, 1, 5):  # offsets within bytes of bits
        plane = Plane.in_memory(TENANT)
        part = frame[start:]
        (result,) = plane.write_arrow(part, mapping=mapping, now_ns=NOW_NS)
        assert result.accepted_count + len(result.rejected_indices) == len(part)
        found = {row["tags"]["entity_id"]: row["fields"] for row in rows_of(scan(plane))}
        for row in part.iter_rows(named=True):
            fields = {name: row[name] for name in columns if row[name] is not None}
            expected = {
                name: float(value) if type(value) is int else value
                for name, value in fields.items()
            }
            assert found.get(str(row["id"]), {}) == expected


@given(
    kind=st.sampled_from(
        ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
    ),
    data=st.data(),
)
def test_integers_of_any_type_are_entities_and_tags_digit_by_digit(kind, data) -> None:
    dtype = getattr(pl, kind)
    low, high = (pl.select(each).item() for each in (dtype.min(), dtype.max()))
    ends = st.sampled_from([low, low + 1, high - 1, high, high // 2, high // 2 + 1, 0])
    numbers = data.draw(st.lists(st.none() | ends | st.integers(low, high), min_size=1))
    frame = pl.DataFrame({"n": pl.Series(numbers, dtype=dtype), "value": [1.0] * len(numbers)})
    frame = frame.with_columns(pl.Series("t", range(len(numbers))) + BASE_NS // SECOND_NS)
    mapping = {"time": "t", "time_unit": "s", "measurement": "link", "entity": "n"}
    mapping |= {"tags": {"port": "n"}, "fields": {"value": "value"}}
    plane = Plane.in_memory(TENANT)
    (result,) = plane.write_arrow(frame, mapping=mapping, now_ns=NOW_NS)
    assert result.accepted_count == len(numbers)
    wanted = [{} if n is None else {"entity_id": str(n), "port": str(n)} for n in numbers]
    rows = sorted(rows_of(scan(plane)), key=lambda row: row["time_ns"])
    assert [row["tags"] for row in rows] == wanted


def test_a_time_beyond_64_bits_with_a_sign_is_no_time() -> None:
    frame = pl.DataFrame({"t": pl.Series([2**63, 2**64 - 1], dtype=pl.UInt64), "value": [1.0, 2.0]})
    plane = Plane.in_memory(TENANT)
    mapping = {"time": "t", "time_unit": "ns", "measurement": "a"}
    with pytest.raises(Refused, match="body', 0, 'time"):
        list(plane.write_arrow(frame, mapping=mapping))
    assert plane.stats().rows == 0


def scan(plane: Plane) -> pl.DataFrame:
    return pl.DataFrame(plane.scan(*EVER, now_ns=NOW_NS))


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_times_of_every_unit(unit) -> None:
    seconds = pl.Series("t", [BASE_NS // SECOND_NS, BASE_NS // SECOND_NS + 1])
    factor = {"ns": 10**9, "us": 10**6, "ms": 10**3}[unit]
    stamps = (seconds * factor).cast(pl.Datetime(unit, "UTC"))
    mapping = {"time": "t", "measurement": "link"}
    texts = pl.Series("t", ["2026-09-21T23:59:00Z", "2026-09-21 23:59:01+00:00"])
    for times, extra in (
        (stamps, {}),
        (seconds * factor, {"time_unit": unit}),
        (seconds, {"time_unit": "s"}),
        (texts, {}),
    ):
        plane = Plane.in_memory(TENANT)
        frame = pl.DataFrame([times, pl.Series("x", [1.0, 2.0])])
        list(plane.write_arrow(frame, mapping=mapping | extra, now_ns=NOW_NS))
        assert scan(plane)["time"].dt.timestamp("ns").to_list() == [BASE_NS, BASE_NS + SECOND_NS]


def test_a_mapping_says_what_each_column_is() -> None:
    plane = Plane.in_memory(TENANT)
    frame = pl.DataFrame(
        {
            "when": [BASE_NS, BASE_NS + 1],
            "kind": ["link", "weather"],
            "device": ["a", None],
            "place": ["x", "y"],
            "value": [1.0, 2.0],
            "unused": [1, 2],
        }
    )
    mapping = {
        "time": "when",
        "time_unit": "ns",
        "measurement": {"column": "kind"},
        "entity": "device",
        "tags": {"site": "place"},
        "fixed_tags": {"source": "file", "tenant": "someone"},
        "fields": {"snr_db": "value"},
    }
    (result,) = plane.write_arrow(frame, mapping=mapping, now_ns=NOW_NS)
    assert (result.accepted_count, result.no_entity_count) == (2, 1)
    fixed = {"source": "file", "tenant": TENANT}
    assert rows_of(scan(plane)) == [
        {
            "measurement": "link",
            "time_ns": BASE_NS,
            "tags": {"entity_id": "a", "site": "x"} | fixed,
            "fields": {"snr_db": 1.0},
        },
        {
            "measurement": "weather",
            "time_ns": BASE_NS + 1,
            "tags": {"site": "y"} | fixed,
            "fields": {"snr_db": 2.0},
        },
    ]


FLAT = {"t": [BASE_NS], "x": [1.0], "l": [[1]], "d": [b"x"], "s": ["a"]}
WRONG = [
    (None, 'there is no column "time", only t, x, l, d, s'),
    ({"measurement": "link"}, "a mapping needs"),
    ({"time": "t", "measurement": "link"}, 'column "t" has integers: say their time_unit'),
    ({"time": "x", "measurement": "link"}, 'column "x" is floating point, not a timestamp'),
    ({"time": "t", "time_unit": "h", "measurement": "link"}, "time_unit is one of s, ms, us, ns"),
    ({"time": "t", "measurement": "link", "tag": {}}, "a mapping has no"),
    ({"time": "t", "time_unit": "ns", "measurement": {}}, "measurement is a name or"),
    ({"time": "t", "time_unit": "ns", "measurement": "link"}, 'column "l" is list: a field is'),
    (
        {"time": "t", "time_unit": "ns", "measurement": "link", "fields": {"f": "d"}},
        'column "d" is binary: a field is',
    ),
    (
        {"time": "t", "time_unit": "ns", "measurement": "link", "entity": "x", "fields": {}},
        'column "x" is floating point, not text',
    ),
    (
        {"time": "t", "time_unit": "ns", "measurement": "link", "fields": {"": "x"}},
        'column "x" gives a field without a name',
    ),
]


@pytest.mark.parametrize(("mapping", "message"), WRONG)
def test_a_wrong_mapping_names_its_column(mapping, message) -> None:
    with pytest.raises(ValueError, match=message):
        list(Plane.in_memory(TENANT).write_arrow(pl.DataFrame(FLAT), mapping=mapping))


def test_each_piece_is_stored_whole_and_said() -> None:
    """Beside the bound of a request; what comes before a piece that is refused stays."""
    plane = Plane.in_memory(TENANT)
    rows = 150_000
    values = [float(at) for at in range(rows)]
    frame = pl.DataFrame({"t": [BASE_NS + at for at in range(rows)], "x": values})
    frame[140_000, "x"] = float("inf")
    mapping = {"time": "t", "time_unit": "ns", "measurement": "link"}
    cursor = bytes(16)
    writes = plane.write_arrow_pieces(
        frame, mapping=mapping, cursor=cursor, first_row=7, now_ns=NOW_NS
    )
    taken = []
    for _ in range(2):
        taken.append(next(writes).accepted_count)
        assert plane.stats().rows == sum(taken)
        assert plane.cursor(cursor) == struct.pack("<Q", 7 + sum(taken))
    with pytest.raises(Refused) as refused:
        next(writes)
    assert taken == [65_536, 65_536]
    assert refused.value.args[1]["detail"][0]["loc"] == ["body", 140_007, "fields", "x"]
    assert plane.stats().rows == sum(taken)


def test_two_thousand_fields_come_back() -> None:
    plane, copy = Plane.in_memory(TENANT), Plane.in_memory(TENANT)
    records = [record(at, {f"f{of}": at + of / 8 for of in range(2000)}) for at in range(20)]
    plane.write_json(encode_records(records), now_ns=NOW_NS)
    assert sum(r.accepted_count for r in copy.write_arrow(plane.scan(*EVER), now_ns=NOW_NS)) == 20
    assert scan(copy).equals(scan(plane))


def test_a_stream_that_fails_says_why() -> None:
    plane, copy = Plane.in_memory(TENANT), Plane.in_memory(TENANT)
    plane.write_json(encode_records([record(0, {"x": 1.0})]))
    writes = copy.write_arrow_pieces(plane.scan(*EVER))
    plane.close()
    with pytest.raises(ValueError, match=r"the stream failed: .*closed"):
        next(writes)
    with pytest.raises(TypeError, match="a list is no table, which has __arrow_c_stream__"):
        copy.write_arrow([1, 2])


def test_a_call_stores_and_gives_the_result_of_each_piece() -> None:
    plane = Plane.in_memory(TENANT)
    rows = 70_000
    frame = pl.DataFrame({"t": [BASE_NS + at for at in range(rows)], "x": [1.0] * rows})
    mapping = {"time": "t", "time_unit": "ns", "measurement": "link"}
    results = plane.write_arrow(frame, mapping=mapping, now_ns=NOW_NS)
    assert [result.accepted_count for result in results] == [65_536, 4_464]
    assert plane.stats().rows == rows
