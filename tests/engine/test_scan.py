"""A scan gives every stored row with all that it holds, from one snapshot, in bounded memory."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import textwrap
from collections import defaultdict
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.engine import Plane, Planes, encode_records, format_time
from fleetcast.errors import StoreUnavailable

from .model import SECOND_NS, Model
from .strategies import BASE_NS, ENTITIES, MEASUREMENTS, NOW_NS, batches
from .test_properties import MASTER_KEY, TENANT, write

if TYPE_CHECKING:
    from pathlib import Path

EVER = (0, 2**62)


def rows_of(frame: pl.DataFrame) -> list[dict]:
    """The rows of a scan as the model has them, field names without their suffixes."""
    times_ns = frame["time"].dt.timestamp("ns").to_list()
    found = []
    for time_ns, row in zip(times_ns, frame.drop("time").iter_rows(named=True), strict=True):
        tags, measurement = row.pop("tags"), row.pop("measurement")
        pairs = tags.items() if isinstance(tags, dict) else ((t["key"], t["value"]) for t in tags)
        fields = {
            name.removesuffix(":float").removesuffix(":bool").removesuffix(":text"): value
            for name, value in row.items()
            if value is not None
        }
        found.append(
            {
                "measurement": measurement,
                "time_ns": time_ns,
                "tags": dict(pairs),
                "fields": fields,
            }
        )
    return found


def exact(row: dict) -> tuple:
    """A row with the bits of its doubles, so that -0.0 differs from 0.0."""
    fields = {
        name: struct.pack("<d", value) if isinstance(value, float) else value
        for name, value in row["fields"].items()
    }
    return sorted(row["tags"].items()), sorted(fields.items(), key=lambda item: item[0])


def by_instant(rows: list[dict]) -> dict[tuple, list[tuple]]:
    """Rows of each entity and instant, in their order."""
    found = defaultdict(list)
    for row in rows:
        tags = row["tags"]
        series = tags.get("entity_id") or tuple(sorted(tags.items()))
        found[row["measurement"], series, row["time_ns"]].append(exact(row))
    return dict(found)


def assert_in_order(rows: list[dict]) -> None:
    """Each entity's rows ascend in time; days come one after the other."""
    days = [row["time_ns"] // (86_400 * SECOND_NS) for row in rows]
    assert days == sorted(days)
    times = defaultdict(list)
    for row in rows:
        entity = row["tags"].get("entity_id")
        if entity:
            times[row["measurement"], entity].append(row["time_ns"])
    assert all(of_entity == sorted(of_entity) for of_entity in times.values())


choices = st.sampled_from


@given(
    written=st.lists(batches, max_size=6),
    compacted=st.lists(st.booleans(), min_size=6, max_size=6),
    start_s=choices([-10_000, 0, 15, 60]),
    end_s=choices([0, 61, 300, 10_000]),
    measurements=choices([None, ["link"], ["satellite", "nothing"], list(MEASUREMENTS), []]),
    entities=choices([None, None, ["a"], [ENTITIES[2], "ghost"], []]),
    fields=choices([None, None, ["snr_db", "mode"], ["ghost"]]),
)
def test_a_scan_gives_the_rows_of_the_model(
    written, compacted, start_s, end_s, measurements, entities, fields
) -> None:
    plane, model = Plane.in_memory(TENANT), Model(TENANT)
    for records, compact in zip(written, compacted, strict=False):
        assert write(plane, records) == model.write(records, NOW_NS)
        if compact:
            plane.compact(whole=True, now_ns=NOW_NS)
    start_ns, end_ns = BASE_NS + start_s * SECOND_NS, BASE_NS + end_s * SECOND_NS
    stream = plane.scan(
        start_ns,
        end_ns,
        measurements=measurements,
        entities=entities,
        fields=fields,
        now_ns=NOW_NS,
    )
    found = rows_of(pl.DataFrame(stream))
    expected = []
    for record in model.records:
        kept = {n: v for n, v in record["fields"].items() if fields is None or n in fields}
        if (
            start_ns <= record["time_ns"] < end_ns
            and (measurements is None or record["measurement"] in measurements)
            and (entities is None or record["tags"].get("entity_id") in entities)
            and kept
        ):
            expected.append(record | {"fields": kept})
    assert by_instant(found) == by_instant(expected)
    assert_in_order(found)


def record(second: int, fields: dict, *, entity: str = "a", measurement: str = "link") -> dict:
    return {
        "measurement": measurement,
        "time": format_time(BASE_NS + second * SECOND_NS),
        "tags": {"entity_id": entity},
        "fields": fields,
    }


def test_columns_tell_fields_of_one_name_apart() -> None:
    plane = Plane.in_memory(TENANT)
    boxed = record(0, {"a": "x", "time": 1.0, "b:bool": 2.0, "n\0l": 3.0}, measurement="box")
    plane.write_json(encode_records([record(0, {"a": 1.0, "z": 1.0, "up": True}), boxed]))
    frame = pl.DataFrame(plane.scan(*EVER))
    names = ["a:float", "a:text", "b:bool:float", "n%00l:float%", "time:float", "up", "z"]
    assert frame.columns == ["time", "measurement", "tags", *names]
    assert pl.DataFrame(plane.scan(*EVER, measurements=["link"])).columns[3:] == ["a", "up", "z"]
    assert pl.DataFrame(plane.scan(0, 1)).shape == (0, 3)


def test_a_stream_of_too_many_columns_says_what_to_choose() -> None:
    plane = Plane.in_memory(TENANT)
    for start in (0, 4000):
        fields = {f"f{at}": 1.0 for at in range(start, start + 4000)}
        plane.write_json(encode_records([record(0, fields)]))
    for way in (
        plane.scan(*EVER).check_table,
        plane.scan(*EVER).__arrow_c_stream__,
        next(plane.scan(*EVER)).__arrow_c_stream__,
    ):
        with pytest.raises(ValueError, match="8000 fields, and a table has columns for 4096"):
            way()
    assert pl.DataFrame(plane.scan(*EVER, fields=["f1", "f7999"])).shape == (2, 5)


def test_rows_of_many_fields_come_in_small_batches() -> None:
    plane = Plane.in_memory(TENANT)
    records = [
        record(at, {f"f{at % 40 * 100 + of}": 1.5 for of in range(100)}) for at in range(400)
    ]
    for start in range(0, 400, 100):
        plane.write_json(encode_records(records[start : start + 100]), now_ns=NOW_NS)
    plane.compact(whole=True, now_ns=NOW_NS)
    frame = pl.DataFrame(plane.scan(*EVER, now_ns=NOW_NS))
    assert frame.shape == (400, 4003)
    assert frame.n_chunks() > 1
    assert (
        frame.select(pl.sum_horizontal(pl.exclude("time", "measurement", "tags"))).sum().item()
        == 400 * 150.0
    )


@pytest.mark.parametrize("is_on_disk", [False, True])
def test_a_stream_outlives_writes_compaction_and_retention(tmp_path: Path, is_on_disk) -> None:
    plane = new_plane(tmp_path) if is_on_disk else Plane.in_memory(TENANT)
    for at in range(4):
        plane.write_json(encode_records([record(at * 40_000, {"snr_db": float(at)})]))
        if at != 2:
            plane.compact(whole=True)
    stream, gone = plane.scan(*EVER), plane.scan(*EVER)
    plane.write_json(encode_records([record(7, {"snr_db": 9.0, "more": 1.0})]))
    plane.set_retention(1)
    assert plane.compact(whole=True).expired
    frame = pl.DataFrame(stream)
    assert sorted(frame["snr_db"]) == [0, 1, 2, 3]
    assert "more" not in frame.columns
    assert pl.DataFrame(plane.scan(*EVER)).is_empty()
    if is_on_disk:
        segments = list((tmp_path / "plane" / "segments").iterdir())
        assert segments, "a second stream keeps what no manifest names"
        del gone
        plane.write_json(encode_records([record(7, {"snr_db": 9.0})]))
        plane.compact(whole=True)
        assert list((tmp_path / "plane" / "segments").iterdir()) == []
    plane.close()


def test_a_closed_plane_ends_its_streams() -> None:
    plane = Plane.in_memory(TENANT)
    plane.write_json(encode_records([record(0, {"snr_db": 1.0})]))
    stream = plane.scan(*EVER)
    plane.close()
    with pytest.raises(pl.exceptions.PolarsError, match="closed"):
        pl.DataFrame(stream)
    with pytest.raises(StoreUnavailable):
        plane.scan(*EVER)


def test_rows_that_are_taken_again_are_scanned_again() -> None:
    plane = Plane.in_memory(TENANT)
    plane.write_json(encode_records([record(0, {"x": 1.5})]), now_ns=NOW_NS)
    stream = plane.scan(*EVER, now_ns=NOW_NS)
    assert pl.Schema(stream) == pl.DataFrame(stream).schema
    plane.write_json(encode_records([record(1, {"x": 2.5})]), now_ns=NOW_NS)
    assert pl.DataFrame(stream)["x"].to_list() == [1.5, 2.5]
    assert sum(len(batch) for batch in stream) == 2
    assert sum(len(batch) for batch in stream) == 2


def test_rows_without_the_named_fields_are_kept_if_every_row_is_wanted() -> None:
    plane = Plane.in_memory(TENANT)
    records = [record(0, {"x": 1.5}), record(1, {"y": 2.5}), record(2, {"x": 3.5, "y": 1.0})]
    plane.write_json(encode_records(records), now_ns=NOW_NS)
    for _ in range(2):
        chosen = {"fields": ["x"], "now_ns": NOW_NS}
        assert pl.DataFrame(plane.scan(*EVER, **chosen))["x"].to_list() == [1.5, 3.5]
        every = pl.DataFrame(plane.scan(*EVER, **chosen, every_row=True))
        assert every.columns == ["time", "measurement", "tags", "x"]
        assert every["x"].to_list() == [1.5, None, 3.5]
        none = plane.scan(*EVER, fields=[], every_row=True, now_ns=NOW_NS)
        assert pl.DataFrame(none).height == 3
        plane.compact(whole=True, now_ns=NOW_NS)


def test_rows_are_chosen_by_their_tags() -> None:
    plane = Plane.in_memory(TENANT)
    sites = {"a": "north", "b": "south", "c": "east", None: "north"}
    records = []
    for at, (entity, site) in enumerate(sites.items()):
        tags = {"site": site} | ({"entity_id": entity} if entity else {})
        records.append({**record(at, {"x": float(at)}), "tags": tags})
    plane.write_json(encode_records(records), now_ns=NOW_NS)

    def found(**chosen) -> list[float]:
        rows = pl.DataFrame(plane.scan(*EVER, now_ns=NOW_NS, **chosen))
        return sorted(rows["x"].to_list()) if len(rows) else []

    for _ in range(2):
        assert found(tags={"site": "north"}) == [0.0, 3.0]
        assert found(tags={"site": ["south", "east"]}) == [1.0, 2.0]
        assert found(tags={"site": "north"}, entities=["a", "b"]) == [0.0]
        assert found(tags={"site": "north", "entity_id": "a"}) == [0.0]
        assert found(tags={"other": "north"}) == []
        plane.compact(whole=True, now_ns=NOW_NS)


def test_tags_of_every_length_come_back() -> None:
    """A view holds 12 bytes of a text, and points to a longer one."""
    values = ["a", "b" * 11, "c" * 12, "d" * 13, "é" * 6, "é" * 7, "e" * 4_000]
    tags = [{"entity_id": f"{value}/{rest}", "site": value} for value in values for rest in values]
    records = [
        {"measurement": "link", "time_ns": BASE_NS, "tags": each, "fields": {"x": 1.0}}
        for each in [*tags, {"entity_id": "alone"}]
        for _ in range(3)
    ]
    plane = Plane.in_memory(TENANT)
    write(plane, records)
    frame = pl.DataFrame(plane.scan(*EVER, now_ns=NOW_NS))
    wanted = sorted(sorted(record["tags"].items()) for record in records)
    assert sorted(sorted(row["tags"].items()) for row in rows_of(frame)) == wanted
    rows = duckdb.from_arrow(plane.scan(*EVER, now_ns=NOW_NS))
    found = rows.project("map_entries(tags)").fetchall()
    assert sorted(sorted((tag["key"], tag["value"]) for tag in row) for (row,) in found) == wanted


def test_a_stream_is_read_batch_by_batch_and_what_is_left_at_once() -> None:
    plane = Plane.in_memory(TENANT)
    records = [
        record(0, {"x": 1.5}),
        record(1, {"up": True}),
        record(2, {"a": '"é\n'}, measurement="box"),
    ]
    plane.write_json(encode_records(records), now_ns=NOW_NS)
    whole = pl.DataFrame(plane.scan(*EVER, now_ns=NOW_NS))
    stream = plane.scan(*EVER, now_ns=NOW_NS)
    first = next(stream)
    assert len(first) == pl.DataFrame(first).height
    assert pl.DataFrame(first).equals(pl.DataFrame(first))
    rest = pl.DataFrame(stream)
    assert rest.equals(whole[-rest.height :])
    assert 0 < rest.height < whole.height
    assert sum(map(len, stream)) == whole.height
    lines = [line for batch in plane.scan(*EVER) for line in batch.json_lines().splitlines()]
    assert sorted(map(json.loads, lines), key=lambda line: line["time"]) == records


def new_plane(directory: Path) -> Plane:
    planes = Planes.in_directory(directory)
    planes.create("plane", MASTER_KEY)
    return planes.open("plane", MASTER_KEY, TENANT)


READER = """
    import resource, sys
    import polars as pl
    from fleetcast.engine import Planes

    pl.DataFrame({"a": [1.0]}).lazy().select(pl.len()).collect(engine="streaming")
    plane = Planes.in_directory(sys.argv[1]).open("plane", bytes(range(32)), "acme")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = pl.scan_arrow_c_stream(plane.scan(0, 2**62))
    sums = rows.select(pl.len(), pl.col("f0").sum()).collect(engine="streaming")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(*sums.row(0), (after - before) * 1024)
"""
BATCHES, ROWS, FIELDS = 60, 1000, 250


@pytest.mark.parametrize("is_compacted", [True, False])
def test_a_stream_takes_memory_by_its_batches_not_by_its_rows(tmp_path: Path, is_compacted) -> None:
    """120 MB of doubles pass; in the log they are more than a stream sorts in memory."""
    plane = new_plane(tmp_path)
    body = encode_records(
        [record(-at, {f"f{of}": at + of / 8 for of in range(FIELDS)}) for at in range(ROWS)]
    )
    assert body.count(b'"2026-09-21T') == ROWS
    for batch in range(BATCHES):
        day = f'"2026-{4 + batch // 28:02}-{1 + batch % 28:02}T'.encode()
        plane.write_json(body.replace(b'"2026-09-21T', day), now_ns=NOW_NS)
        if is_compacted and batch % 10 == 9:
            plane.compact(whole=True, now_ns=NOW_NS)
    plane.close()
    reader = [sys.executable, "-c", textwrap.dedent(READER), str(tmp_path)]
    printed = subprocess.run(reader, check=True, capture_output=True, text=True).stdout
    rows, total, grown_bytes = printed.split()
    assert (int(rows), float(total)) == (BATCHES * ROWS, BATCHES * sum(range(ROWS)))
    # A round of the log is a million values, sorted from one copy into another.
    assert int(grown_bytes) < (64 if is_compacted else 192) << 20
