"""Deleted rows are hidden from every read of every process at once, and gone after compaction."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.engine import Engine, Plane, format_time
from tests.waiting import PATIENCE_SECONDS

from .model import SECOND_NS, Model
from .strategies import (
    BASE_NS,
    ENTITIES,
    MEASUREMENTS,
    NOW_NS,
    batches,
    latest_queries,
    series_queries,
)
from .test_properties import MASTER_KEY, TENANT, planes, same, write
from .test_scan import EVER, by_instant, rows_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["planes"]  # a fixture

MINUTE_NS = 60 * SECOND_NS


@st.composite
def deletes(draw) -> dict:
    """Ranges around the rows of the strategies, of some names or of all."""
    start_ns = BASE_NS + draw(st.integers(-60, 310) | st.integers(-60, 7200)) * SECOND_NS
    span_ns = draw(st.sampled_from([1, SECOND_NS, 60 * SECOND_NS, 7200 * SECOND_NS]))
    names = st.none() | st.lists(st.sampled_from(MEASUREMENTS), min_size=1, max_size=2)
    entities = st.none() | st.lists(st.sampled_from(ENTITIES), min_size=1, max_size=2)
    return {
        "start_ns": start_ns,
        "end_ns": start_ns + span_ns,
        "measurements": draw(names),
        "entities": draw(entities),
    }


def delete_modelled(model: Model, delete: dict) -> dict:
    before = model.records
    rows = model.delete(**delete)
    kept = {id(record) for record in model.records}
    hit = [record for record in before if id(record) not in kept]
    times = [record["time_ns"] for record in hit]
    ids = {(record["measurement"], record["tags"].get("entity_id")) for record in hit}
    return {
        "rows": rows,
        "entities": sum(bool(entity) for _, entity in ids),
        "measurements": sorted({measurement for measurement, _ in ids}),
        "first_ns": min(times, default=None),
        "last_ns": max(times, default=None),
    }


def counts(plane: Plane, delete: dict, **options) -> dict:
    done = plane.delete(**delete, **options)
    names = ("rows", "entities", "measurements", "first_ns", "last_ns")
    return {name: getattr(done, name) for name in names}


steps = st.one_of(
    batches,
    deletes(),
    st.sampled_from(["compact", "compact", "reopen"]),
)


class Pair:
    """A store on disk and one in memory, and the model of both."""

    def __init__(self, engine: Engine, account: str) -> None:
        self.engine, self.account = engine, account
        self.model, self._twin = Model(TENANT), Plane.in_memory(TENANT)

    def planes(self) -> tuple[Plane, Plane]:
        return self.engine.plane(self.account, TENANT), self._twin

    def write(self, batch: list[dict]) -> None:
        expected = self.model.write(batch, NOW_NS)
        assert [write(plane, batch) for plane in self.planes()] == [expected] * 2

    def delete(self, delete: dict) -> None:
        dry = [counts(plane, delete, dry_run=True) for plane in self.planes()]
        expected = delete_modelled(self.model, delete)
        assert dry == [counts(plane, delete) for plane in self.planes()] == [expected] * 2

    def compact(self) -> None:
        for plane in self.planes():
            plane.compact(whole=True, now_ns=NOW_NS)

    def assert_alike(self, latest: list[dict], series: list[dict]) -> None:
        for plane in self.planes():
            scanned = rows_of(pl.DataFrame(plane.scan(*EVER)))
            assert by_instant(scanned) == by_instant(self.model.records)
            for query in latest:
                answer, expected = (
                    json.loads(plane.latest_json(**query)),
                    self.model.latest(**query),
                )
                assert same(answer, expected, exact=True), (query, answer, expected)
            for query in series:
                exact = query["agg"] not in {None, "mean"} or query["interval"] is None
                answer = json.loads(plane.series_json(**query, now_ns=NOW_NS))
                expected = self.model.series(**query)
                assert same(answer, expected, exact=exact), (query, answer, expected)


@given(
    taken=st.lists(steps, min_size=2, max_size=10),
    repeats=st.sampled_from([1, 1, 6]),
    latest=st.lists(latest_queries, min_size=2, max_size=4),
    series=st.lists(series_queries(), min_size=2, max_size=4),
)
def test_disk_twin_and_model_answer_alike_after_deletes(
    planes, taken, repeats, latest, series
) -> None:
    """Random writes, deletes, compactions and openings; reads compare equal after each delete."""
    pair = Pair(*planes())
    for step in taken:
        if isinstance(step, list):
            for _ in range(repeats):
                pair.write(step)
        elif isinstance(step, dict):
            pair.delete(step)
            pair.assert_alike(latest, series)
        elif step == "compact":
            pair.compact()
        else:
            pair.engine.release(pair.account)
    assert pair.engine.verify(pair.account).damages == []
    pair.assert_alike(latest, series)
    pair.compact()
    pair.assert_alike(latest, series)
    left = len(pair.model.records)
    for plane in pair.planes():
        assert plane.stats().stored_rows == left
        assert plane.delete(-(2**63), 2**63 - 1, dry_run=True).rows == left
    found = pair.engine.verify(pair.account)
    assert (found.damages, found.rows) == ([], left)


def row(second: int, entity: str = "e0", value: float = 1.0, measurement: str = "link") -> dict:
    return {
        "measurement": measurement,
        "time_ns": BASE_NS + second * SECOND_NS,
        "tags": {"entity_id": entity},
        "fields": {"snr_db": value},
    }


def newest(plane: Plane) -> dict[str, str]:
    query = {"as_of_ns": NOW_NS, "freshness_ns": 30 * 86_400 * SECOND_NS, "now_ns": NOW_NS}
    answer = json.loads(plane.latest_json(**query))
    return {entity["entity_id"]: entity["observed_at"] for entity in answer["entities"]}


@pytest.mark.parametrize("compacted", [False, True])
def test_a_range_is_corrected_by_deleting_it_and_writing_it_anew(compacted) -> None:
    plane = Plane.in_memory(TENANT)
    write(plane, [row(second) for second in range(10)])
    if compacted:
        plane.compact(whole=True, now_ns=NOW_NS)
    query = {"entity_ids": ["e0"], "start_ns": BASE_NS, "end_ns": BASE_NS + MINUTE_NS}
    query |= {"measurement": "link", "now_ns": NOW_NS}

    def values() -> list[float]:
        answer = json.loads(plane.series_json(**query))
        return answer["series"][0]["channels"].get("snr_db", [])

    done = plane.delete(BASE_NS + 3 * SECOND_NS, BASE_NS + 5 * SECOND_NS)
    assert (done.rows, done.entities, done.measurements) == (2, 1, ["link"])
    write(plane, [row(3, value=30.0), row(4, value=40.0)])
    for _ in range(2):
        assert values() == [1.0, 1.0, 1.0, 30.0, 40.0, 1.0, 1.0, 1.0, 1.0, 1.0]
        plane.compact(whole=True, now_ns=NOW_NS)
    assert plane.stats().stored_rows == 10
    assert plane.stats().rows == 12


def test_bad_deletes_are_refused_and_too_many_say_compact_first() -> None:
    plane = Plane.in_memory(TENANT)
    for bad in (
        {"start_ns": 5, "end_ns": 5},
        {"start_ns": 0, "end_ns": 1, "entities": []},
        {"start_ns": 0, "end_ns": 1, "measurements": []},
        {"start_ns": 0, "end_ns": 1, "entities": ["x" * (64 << 10), "y"]},
    ):
        start_ns, end_ns = bad.pop("start_ns"), bad.pop("end_ns")
        with pytest.raises(ValueError, match=r"start|list|names"):
            plane.delete(start_ns, end_ns, **bad)
    write(plane, [row(second) for second in range(130)])

    def delete(second: int):
        return plane.delete(BASE_NS + second * SECOND_NS, BASE_NS + (second + 1) * SECOND_NS)

    assert delete(-5).rows == 0, "what hides nothing leaves nothing behind"
    for second in range(128):
        assert delete(second).rows == 1
    with pytest.raises(ValueError, match="compact"):
        delete(128)
    assert plane.upcoming(now_ns=NOW_NS).due_ns == NOW_NS
    plane.compact(now_ns=NOW_NS)
    assert plane.upcoming(now_ns=NOW_NS).due_ns is None
    assert delete(128).rows == 1
    assert newest(plane) == {"e0": format_time(BASE_NS + 129 * SECOND_NS)}
    assert plane.delete(BASE_NS, BASE_NS + 200 * SECOND_NS).rows == 1
    assert newest(plane) == {}
    plane.compact(whole=True, now_ns=NOW_NS)
    assert (plane.stats().segments, plane.stats().stored_rows) == (0, 0)


def test_a_stream_that_began_before_a_delete_has_its_rows(tmp_path: Path) -> None:
    """It reads the snapshot that it began with, also after the rows were removed."""
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("a")
    plane = engine.plane("a", TENANT)
    for day in range(3):
        write(plane, [row(second - day * 86_400) for second in range(40)])
        plane.compact(whole=True, now_ns=NOW_NS)
    before, after = plane.scan(*EVER), plane.scan(*EVER)
    assert plane.delete(BASE_NS - 86_400 * SECOND_NS, BASE_NS + 20 * SECOND_NS).rows == 60
    assert len(pl.DataFrame(before)) == 120
    plane.compact(whole=True, now_ns=NOW_NS)
    assert len(pl.DataFrame(after)) == 120
    assert len(pl.DataFrame(plane.scan(*EVER))) == plane.stats().stored_rows == 60
    engine.close()


def test_retention_goes_on_beside_deletes() -> None:
    plane = Plane.in_memory(TENANT)
    days = [row(-day * 86_400, entity=f"e{day % 2}") for day in range(6)]
    write(plane, days)
    plane.compact(whole=True, now_ns=NOW_NS)
    plane.delete(BASE_NS - 3 * 86_400 * SECOND_NS, BASE_NS - 86_400 * SECOND_NS, entities=["e1"])
    plane.set_retention(4 * 86_400 + 3 * 3_600)
    done = plane.compact(whole=True, now_ns=NOW_NS)
    assert (done.expired, done.purged) == (1, 1)
    assert plane.stats().stored_rows == 4
    assert newest(plane).keys() == {"e0", "e1"}


def test_a_delete_waits_for_no_compaction_of_another(tmp_path: Path) -> None:
    """`None` while another process compacts; here the lock is held as one does."""
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("a")
    write(engine.plane("a", TENANT), [row(0)])
    engine.plane("a", TENANT).compact(whole=True, now_ns=NOW_NS)
    with (tmp_path / "a" / "compaction.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert engine.plane("a", TENANT).delete(BASE_NS, NOW_NS) is None
    assert engine.plane("a", TENANT).delete(BASE_NS, NOW_NS).rows == 1
    engine.close()


def follow_deletes(directory: Path, commands, answers) -> None:
    engine = Engine(directory, MASTER_KEY)
    while (command := commands.get()) is not None:
        plane = engine.plane("a", TENANT)
        if command == "compact":
            plane.compact(whole=True, now_ns=NOW_NS)
        answers.put(newest(plane))
    engine.close()


@pytest.mark.parametrize("compacted", [False, True])
def test_another_process_follows_deletes_and_those_it_never_saw(tmp_path, compacted) -> None:
    """It sees a tombstone with its next read, or that one was there and is gone by now."""
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("a")
    plane = engine.plane("a", TENANT)
    context = multiprocessing.get_context("spawn")
    commands, answers = context.Queue(), context.Queue()
    other = context.Process(target=follow_deletes, args=(tmp_path, commands, answers))
    other.start()

    def ask(command: str = "read") -> dict[str, str]:
        commands.put(command)
        return answers.get(timeout=PATIENCE_SECONDS)

    def at(second: int) -> str:
        return format_time(BASE_NS + second * SECOND_NS)

    write(plane, [row(second, entity=f"e{second % 2}") for second in range(10)])
    if compacted:
        plane.compact(whole=True, now_ns=NOW_NS)
    assert ask() == newest(plane) == {"e0": at(8), "e1": at(9)}
    plane.delete(BASE_NS + 9 * SECOND_NS, NOW_NS)
    assert ask() == newest(plane) == {"e0": at(8), "e1": at(7)}
    plane.delete(BASE_NS + 6 * SECOND_NS, NOW_NS, entities=["e0"])
    plane.compact(whole=True, now_ns=NOW_NS)
    assert ask() == newest(plane) == {"e0": at(4), "e1": at(7)}
    write(plane, [row(8, entity="e0")])
    plane.delete(BASE_NS, BASE_NS + 8 * SECOND_NS, measurements=["link"])
    assert ask("compact") == newest(plane) == {"e0": at(8)}
    commands.put(None)
    other.join()
    assert other.exitcode == 0
    engine.close()
