"""The store on disk, its in-memory twin and the plain model answer alike, byte for byte in values.

Mean is the one exception: the model sums exactly, the engine in doubles.
"""

from __future__ import annotations

import json
import math
import multiprocessing
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcast.engine import Engine, Plane, encode_records, format_time
from fleetcast.errors import Refused

from .model import SECOND_NS, Model
from .strategies import (
    BASE_NS,
    NOW_NS,
    batches,
    crowded_batches,
    latest_queries,
    series_queries,
)

if TYPE_CHECKING:
    from pathlib import Path

TENANT = "acme"
MASTER_KEY = bytes(range(32))


def to_body(records: list[dict]) -> bytes:
    return encode_records(
        {
            **{k: v for k, v in record.items() if k != "time_ns"},
            "time": format_time(record["time_ns"]),
        }
        for record in records
    )


def write(plane: Plane, records: list[dict]) -> list[int] | None:
    try:
        return plane.write_json(to_body(records), now_ns=NOW_NS).rejected_indices
    except Refused as refused:
        if refused.args[0] != "field_type_conflict":
            raise
        return None


def same(ours: object, model: object, *, exact: bool) -> bool:
    """Equal with types and the sign of zero; means may differ in their last bits."""
    if type(ours) is not type(model):
        return False
    if isinstance(ours, dict):
        return ours.keys() == model.keys() and all(
            same(ours[key], model[key], exact=exact) for key in ours
        )
    if isinstance(ours, list):
        return len(ours) == len(model) and all(
            same(a, b, exact=exact) for a, b in zip(ours, model, strict=True)
        )
    if isinstance(ours, float) and not exact:
        return math.isclose(ours, model, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(ours, float):
        return ours == model and math.copysign(1, ours) == math.copysign(1, model)
    return ours == model


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory):
    """New planes on disk, a new folder for each."""
    engine = Engine(tmp_path_factory.mktemp("planes"), MASTER_KEY)
    created = []

    def make() -> tuple[Engine, str]:
        account = f"account-{len(created)}"
        created.append(account)
        engine.create_plane(account)
        return engine, account

    yield make
    engine.close()


@given(
    written=st.lists(batches, max_size=6),
    repeats=st.sampled_from([1, 1, 6]),
    compacted=st.lists(st.booleans(), min_size=7, max_size=7),
    latest=st.lists(latest_queries, min_size=3, max_size=6),
    series=st.lists(series_queries(), min_size=3, max_size=6),
    reopened=st.booleans(),
)
def test_disk_twin_and_model_answer_alike(
    planes, written, repeats, compacted, latest, series, reopened
) -> None:
    """F4 to F6, G1 to G6, H9 to H15, H23 to H27 and N4 at once, over random writes, compactions and
    reads. A batch that is written often gives its hours statistics."""
    engine, account = planes()
    model, twin = Model(TENANT), Plane.in_memory(TENANT)
    for records, compact in zip(written, compacted, strict=False):
        for _ in range(repeats):
            expected = model.write(records, NOW_NS)
            assert write(engine.plane(account, TENANT), records) == expected
            assert write(twin, records) == expected
        if compact:
            engine.plane(account, TENANT).compact(whole=True, now_ns=NOW_NS)
    if compacted[-1]:
        twin.compact(whole=True, now_ns=NOW_NS)
    if reopened:
        engine.release(account)
    disk = engine.plane(account, TENANT)
    for query in latest:
        expected = model.latest(**query)
        for plane in (disk, twin):
            answer = json.loads(plane.latest_json(**query))
            assert same(answer, expected, exact=True), (query, answer, expected)
    for query in series:
        expected = model.series(**query)
        exact = query["agg"] not in (None, "mean") or query["interval"] is None
        for plane in (disk, twin):
            answer = json.loads(plane.series_json(**query, now_ns=NOW_NS))
            assert same(answer, expected, exact=exact), (query, answer, expected)
    found = engine.verify(account)
    assert (found.damages, found.rows) == ([], len(model.records))


@settings(max_examples=max(12, settings().max_examples // 5))  # megabytes each
@given(
    written=st.lists(crowded_batches, min_size=2, max_size=5),
    compacted=st.lists(st.booleans(), min_size=5, max_size=5),
    as_of_s=st.sampled_from([1, 16]),
)
def test_n5_a_newest_sample_is_put_together_alike_from_log_and_segments(
    planes, written, compacted, as_of_s
) -> None:
    """F6, N3, N5: many rows of one instant, whenever they are compacted and read anew."""
    engine, account = planes()
    model, twin = Model(TENANT), Plane.in_memory(TENANT)
    for records, compact in zip(written, compacted, strict=False):
        for record in records:  # each within the body of a request
            assert model.write([record], NOW_NS) == write(twin, [record]) == []
            assert write(engine.plane(account, TENANT), [record]) == []
        if compact:
            engine.plane(account, TENANT).compact(whole=True, now_ns=NOW_NS)
    for as_of_ns in (NOW_NS, BASE_NS + as_of_s * SECOND_NS):
        query = {"as_of_ns": as_of_ns, "freshness_ns": 7200 * SECOND_NS, "measurement": "link"}
        expected = model.latest(**query)
        for _ in range(2):
            for plane in (engine.plane(account, TENANT), twin):
                assert json.loads(plane.latest_json(**query)) == expected
            engine.release(account)
    assert engine.verify(account).damages == []


@given(
    written=st.lists(batches, max_size=4),
    kept_seconds=st.sampled_from([1, 7000, 7080, 7140, 7200, 10_000]),
    latest=st.lists(latest_queries, min_size=2, max_size=3),
    series=st.lists(series_queries(), min_size=2, max_size=3),
    compacted=st.booleans(),
)
def test_what_retention_hides_is_hidden_to_the_nanosecond(
    written, kept_seconds, latest, series, compacted
) -> None:
    """D14: at once, before and after segments are removed, and lifted for what is still there."""
    plane, model = Plane.in_memory(TENANT), Model(TENANT)
    for records in written:
        model.write(records, NOW_NS)
        write(plane, records)
    if compacted:
        plane.compact(whole=True, now_ns=NOW_NS)
    plane.set_retention(kept_seconds)
    kept = model.keep_from(NOW_NS - kept_seconds * SECOND_NS)
    for _ in range(2):
        for query in latest:
            answer = json.loads(plane.latest_json(**query, now_ns=NOW_NS))
            assert same(answer, kept.latest(**query), exact=True), query
        for query in series:
            answer = json.loads(plane.series_json(**query, now_ns=NOW_NS))
            assert same(answer, kept.series(**query), exact=False), query
        plane.compact(whole=True, now_ns=NOW_NS)
    plane.set_retention(None)
    stats = plane.stats()
    assert stats.rows == len(model.records)
    assert len(kept.records) <= stats.stored_rows <= stats.rows


@given(written=batches, replays=st.integers(1, 6), query=series_queries())
def test_following_next_start_reads_everything_once(written, replays, query) -> None:
    """H23: reissuing with `start = next_start` neither loses nor repeats a row."""
    plane = Plane.in_memory(TENANT)
    model = Model(TENANT)
    for _ in range(replays):
        if model.write(written, NOW_NS) is not None:
            plane.write_json(to_body(written), now_ns=NOW_NS)
    query |= {"measurement": "link", "interval": None, "agg": None, "point_budget": 16}
    query |= {"answer_values_max": 1_000_000}
    query["end_ns"] = query["start_ns"] + 3600 * SECOND_NS
    whole = model.series(**(query | {"point_budget": 10_000}))
    rows: dict[str, list] = {entity["entity_id"]: [] for entity in whole["series"]}
    start_ns, pages = query["start_ns"], 0
    while start_ns is not None:
        page = json.loads(plane.series_json(**(query | {"start_ns": start_ns}), now_ns=NOW_NS))
        for entity in page["series"]:
            rows[entity["entity_id"]] += entity["times"]
        pages += 1
        assert pages < 1000
        start_ns = None
        if page["truncated"]:
            start_ns = model_parse(page["next_start"])
    dropped = sum(map(len, rows.values())) < sum(e["point_count"] for e in whole["series"])
    # H25: only an instant that is over the budget by itself loses rows.
    if not dropped:
        assert rows == {entity["entity_id"]: entity["times"] for entity in whole["series"]}
    else:
        times = [time for entity in whole["series"] for time in entity["times"]]
        assert max(map(times.count, times)) > 16


def values_of(series: list[dict]) -> list[tuple]:
    """Every value of an answer with its entity, time and channel, in the order of the answer."""
    return [
        (entity["entity_id"], time, name, value)
        for entity in series
        for name, values in entity["channels"].items()
        for time, value in zip(entity["times"], values, strict=True)
        if value is not None
    ]


@given(
    written=batches,
    values_max=st.sampled_from([1, 10, 40]),
    query=series_queries(),
    compacted=st.booleans(),
)
def test_n4_pages_within_the_bound_have_every_value_once(
    written, values_max, query, compacted
) -> None:
    """N4: raw and aggregated answers are cut at a time from which the next one goes on. Only the
    first time of an answer may hold more, a row of each entity."""
    plane, model = Plane.in_memory(TENANT), Model(TENANT)
    if model.write(written, NOW_NS) is not None:
        plane.write_json(to_body(written), now_ns=NOW_NS)
    if compacted:
        plane.compact(whole=True, now_ns=NOW_NS)
    query |= {"measurement": "link", "point_budget": 10_000, "answer_values_max": 1_000_000}
    whole = json.loads(plane.series_json(**query, now_ns=NOW_NS))
    start_ns, found, rows_left_out = query["start_ns"], [], False
    while start_ns is not None:
        asked = query | {"start_ns": start_ns, "answer_values_max": values_max}
        body = plane.series_json(**asked, now_ns=NOW_NS)
        page = json.loads(body)
        counts = [(e["point_count"], len(e["channels"])) for e in page["series"]]
        held = sum(rows * (1 + channels) for rows, channels in counts)
        assert held <= values_max or all(rows <= 1 for rows, _ in counts)
        found += values_of(page["series"])
        start_ns = model_parse(page["next_start"]) if page["truncated"] else None
        rows_left_out |= start_ns is not None and start_ns % SECOND_NS == 1
    if rows_left_out:
        assert set(found) <= set(values_of(whole["series"]))
    else:
        assert sorted(found) == sorted(values_of(whole["series"]))


def model_parse(text: str) -> int:
    whole, _, fraction = text.removesuffix("Z").partition(".")
    seconds = int(datetime.fromisoformat(whole + "+00:00").timestamp())
    return seconds * SECOND_NS + int(fraction.ljust(9, "0") or "0")


def process_batches(process: int) -> list[list[dict]]:
    """Batches of one writer: instants of its own, entities and fields shared with the others."""
    return [
        [
            {
                "measurement": "link",
                "time_ns": BASE_NS + (batch * 90 + row * 3 + process) * SECOND_NS,
                "tags": {"entity_id": f"e{row % 4}", "site": f"s{process}"},
                "fields": {"snr_db": batch + row / 10, f"own_{process}": float(row)},
            }
            for row in range(30)
        ]
        for batch in range(15)
    ]


def run_writer(directory: Path, process: int, start) -> None:
    engine = Engine(directory, MASTER_KEY)
    plane = engine.plane("shared", TENANT)
    start.wait()
    for records in process_batches(process):
        plane.write_json(to_body(records), now_ns=NOW_NS)
        seen = json.loads(plane.latest_json(as_of_ns=NOW_NS, freshness_ns=7200 * SECOND_NS))
        newest = {entity["entity_id"]: entity["observed_at"] for entity in seen["entities"]}
        for record in records:
            assert newest[record["tags"]["entity_id"]] >= format_time(record["time_ns"])
    engine.close()


def test_three_processes_write_one_plane(tmp_path: Path) -> None:
    """Store promises: all writers' batches are there, each process reads its own at once."""
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("shared")
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(3)
    writers = [context.Process(target=run_writer, args=(tmp_path, n, start)) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]

    model = Model(TENANT)
    for process in range(3):
        for records in process_batches(process):
            model.write(records, NOW_NS)
    plane = engine.plane("shared", TENANT)
    assert plane.stats().rows == len(model.records) == 3 * 15 * 30
    assert plane.stats().batches == 45
    query = {
        "entity_ids": ["e0", "e1", "e2", "e3"],
        "start_ns": BASE_NS,
        "end_ns": BASE_NS + 3600 * SECOND_NS,
        "measurement": "link",
    }
    assert json.loads(plane.series_json(**query, now_ns=NOW_NS)) == model.series(**query)
    topology = plane.latest_json(as_of_ns=NOW_NS, freshness_ns=7200 * SECOND_NS)
    assert json.loads(topology) == model.latest(NOW_NS, 7200 * SECOND_NS, None)
    engine.close()
