"""Newest samples at their bounds: width, rows of one instant, clocks that were wrong, retention."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from fleetcast.engine import Engine, Plane, Service, encode_records, format_time

from .model import SECOND_NS
from .strategies import BASE_NS, NOW_NS

if TYPE_CHECKING:
    from fleetcast.engine import Stats

DAY_NS = 86_400 * SECOND_NS
WEEK_NS = 7 * DAY_NS
MASTER_KEY = bytes(32)


def record(entity: str, time_ns: int, fields: dict, **tags: str) -> dict:
    tags = {"entity_id": entity, **tags}
    time = format_time(time_ns)
    return {"measurement": "link", "time": time, "tags": tags, "fields": fields}


def write(plane: Plane, *records: dict, now_ns: int = NOW_NS) -> None:
    plane.write_json(encode_records(records), now_ns=now_ns)


def newest(plane: Plane, *, now_ns: int = NOW_NS, as_of_ns: int | None = None) -> dict[str, dict]:
    answer = plane.latest_json(as_of_ns=as_of_ns, freshness_ns=WEEK_NS, now_ns=now_ns)
    return {entity["entity_id"]: entity for entity in json.loads(answer)["entities"]}


def resident_bytes() -> int:
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_n5_rows_of_one_instant_without_end_are_compacted_and_read(tmp_path: Path) -> None:
    """66 legal writes for one entity and instant, each with another text of 1 MB: no row that a
    checkpoint cannot hold comes of them, and the newest ones are what is read."""
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("a")
    plane = engine.plane("a", "acme")
    for at in range(66):
        text = chr(ord("A") + at % 26) * 1_000_000
        write(plane, record("one", BASE_NS, {f"text_{at:02}": text}))
    write(plane, record("two", BASE_NS, {"snr_db": 1.5}))
    before = newest(plane)
    assert list(before["one"]["fields"]) == ["text_64", "text_65"]
    assert before["two"]["fields"] == {"snr_db": 1.5}
    plane.compact(whole=True, now_ns=NOW_NS)
    engine.release("a")
    del plane
    reopened = engine.plane("a", "acme")
    assert newest(reopened) == before
    assert reopened.stats().stored_rows == 67
    del reopened
    assert engine.verify("a").damages == []
    engine.close()


def test_n3_width_takes_what_its_values_take() -> None:
    """990 entities beside one that has 60,000 fields over many records: newest samples, answers and
    frames take what is stored, not entities times fields, which were 480 MB."""
    plane = Plane.in_memory("acme")
    write(plane, record("narrow-0", BASE_NS, {"snr_db": 0.5}))
    newest(plane)
    before = resident_bytes()
    write(plane, *(record(f"narrow-{at}", BASE_NS, {"snr_db": 1.5}) for at in range(990)))
    for start in range(0, 60_000, 4_000):
        fields = {f"wide_{at}": 1.5 for at in range(start, start + 4_000)}
        write(plane, record("wide", BASE_NS, fields))
    found = newest(plane)
    assert len(found) == 991
    assert len(found["wide"]["fields"]) == 60_000
    assert found["narrow-7"]["fields"] == {"snr_db": 1.5}
    plane.compact(whole=True, now_ns=NOW_NS)
    assert newest(plane) == found
    with pytest.raises(ValueError, match="name the fields"):
        plane.latest_frame("link", as_of_ns=NOW_NS, freshness_ns=WEEK_NS)
    frame = plane.latest_frame(
        "link", as_of_ns=NOW_NS, freshness_ns=WEEK_NS, fields=["snr_db", "wide_59999"]
    )
    table = pl.DataFrame(frame)
    assert table.shape == (991, 5)
    assert table["wide_59999"].drop_nulls().to_list() == [1.5]
    assert resident_bytes() - before < 200_000_000


def test_a_frame_of_some_entities_and_no_field_has_their_tags() -> None:
    plane = Plane.in_memory("acme")
    write(plane, *(record(name, BASE_NS, {"snr_db": 1.0}, site=name * 2) for name in "abc"))
    frame = pl.DataFrame(
        plane.latest_frame(
            "link", entity_ids=["c", "a", "ghost"], fields=[], as_of_ns=NOW_NS, freshness_ns=WEEK_NS
        )
    )
    assert frame.columns == ["entity_id", "observed_at", "tags"]
    assert frame["entity_id"].to_list() == ["a", "c"]
    assert json.loads(frame["tags"][1]) == {"entity_id": "c", "site": "cc"}


def test_f6_tag_sets_in_turns_at_one_instant_stay_one_sample() -> None:
    """Point 10 of the second look: neither memory nor the answer grows with every write."""
    plane = Plane.in_memory("acme")
    for turn in range(3_000):
        write(plane, record("one", BASE_NS, {"turn": turn}, site="xyz"[turn % 3]))
    (entity,) = newest(plane).values()
    assert (entity["fields"], entity["tags"]["site"]) == ({"turn": 2999.0}, "z")
    plane.compact(whole=True, now_ns=NOW_NS)
    assert newest(plane)["one"] == entity


YEAR_NS = 365 * DAY_NS


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("reopened", [False, True])
def test_d15_a_write_under_a_wrong_clock_does_not_blind_reads(
    tmp_path: Path, compacted, reopened
) -> None:
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("a")
    plane = engine.plane("a", "acme")
    write(plane, record("right", NOW_NS - SECOND_NS, {"snr_db": 1.0}))
    ahead_ns = NOW_NS + YEAR_NS
    write(plane, record("wrong", ahead_ns, {"snr_db": 2.0}), now_ns=ahead_ns)
    write(plane, record("right", NOW_NS + SECOND_NS, {"snr_db": 3.0}))
    if compacted:
        plane.compact(whole=True, now_ns=NOW_NS)
    if reopened:
        engine.release("a")
    del plane
    plane = engine.plane("a", "acme")
    later_ns = NOW_NS + 2 * SECOND_NS
    found = newest(plane, now_ns=later_ns)
    assert {name: entity["fields"] for name, entity in found.items()} == {"right": {"snr_db": 3.0}}
    series = plane.series_json(
        entity_ids=["right"],
        start_ns=NOW_NS - 3600 * SECOND_NS,
        measurement="link",
        now_ns=later_ns,
    )
    assert json.loads(series)["series"][0]["channels"] == {"snr_db": [1.0, 3.0]}
    assert plane.ingest_lead_ns(now_ns=NOW_NS) == YEAR_NS
    # Its row shows with `as_of_utc`, and when its time has come.
    assert set(newest(plane, now_ns=NOW_NS, as_of_ns=ahead_ns + 1)) == {"wrong"}
    assert set(newest(plane, now_ns=ahead_ns + SECOND_NS)) == {"wrong"}
    assert plane.ingest_lead_ns(now_ns=ahead_ns) == 0
    del plane
    engine.close()


def test_d15_a_lead_of_five_seconds_is_followed_and_more_is_not() -> None:
    for lead_ns, is_followed in [(5 * SECOND_NS, True), (5 * SECOND_NS + 1, False)]:
        plane = Plane.in_memory("acme")
        ahead_ns = NOW_NS + lead_ns
        write(plane, record("e", ahead_ns, {"snr_db": 1.0}), now_ns=ahead_ns)
        assert bool(newest(plane, now_ns=NOW_NS)) is is_followed
        assert plane.ingest_lead_ns(now_ns=NOW_NS) == (0 if is_followed else lead_ns)


def test_d12_what_a_right_clock_wrote_after_a_wrong_one_is_read_at_once() -> None:
    plane = Plane.in_memory("acme")
    write(plane, record("e", BASE_NS, {"snr_db": 1.0}), now_ns=NOW_NS + YEAR_NS)
    write(plane, record("e", NOW_NS, {"snr_db": 2.0}), now_ns=NOW_NS)
    assert newest(plane, now_ns=NOW_NS - SECOND_NS)["e"]["fields"] == {"snr_db": 2.0}


def test_d15_the_horizon_goes_by_the_clock_whatever_was_written() -> None:
    """H20 at its bound, under a lead that reads follow."""
    plane = Plane.in_memory("acme")
    write(plane, record("e", NOW_NS, {"snr_db": 1.0}), now_ns=NOW_NS + 4 * SECOND_NS)
    reach_ns = 30 * DAY_NS + 60 * SECOND_NS
    answer = plane.series_json(
        entity_ids=["e"],
        start_ns=NOW_NS - reach_ns,
        measurement="link",
        interval="1h",
        now_ns=NOW_NS,
    )
    assert json.loads(answer)["series"][0]["point_count"] == 1


@pytest.mark.parametrize("reopened", [False, True])
def test_d14_what_retention_removed_does_not_come_back(tmp_path: Path, reopened) -> None:
    """A day that is gone from disk is gone from the memory of who had read it, too."""
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("a")
    plane = engine.plane("a", "acme")
    write(plane, record("old", NOW_NS - 3 * DAY_NS, {"snr_db": 1.0}))
    plane.compact(whole=True, now_ns=NOW_NS)
    write(plane, record("new", NOW_NS - SECOND_NS, {"snr_db": 2.0}))
    assert set(newest(plane)) == {"old", "new"}
    plane.set_retention(86_400)
    assert set(newest(plane)) == {"new"}
    plane.compact(whole=True, now_ns=NOW_NS)
    plane.set_retention(None)
    if reopened:
        engine.release("a")
    del plane
    plane = engine.plane("a", "acme")
    stats: Stats = plane.stats()
    assert (stats.stored_rows, set(newest(plane))) == (1, {"new"})
    del plane
    engine.close()


def test_pieces_of_an_answer_stay_as_they_are_while_others_are_made() -> None:
    """Python holds memory of the engine, which no other answer is written to until it is let go."""
    plane = Plane.in_memory("acme")
    names = [f"link-{number:04}" for number in range(9_000)]
    held = []
    for round_number in range(4):
        fields = {"snr_db": round_number + 0.5, "note": "x" * 200}
        for first in range(0, len(names), 1_000):
            some = names[first : first + 1_000]
            write(plane, *(record(name, BASE_NS + round_number, fields) for name in some))
        query = f"as_of_utc={format_time(NOW_NS)}&freshness_seconds={WEEK_NS // SECOND_NS}"
        pieces = list(Service.latest(plane, query))
        assert len(pieces) > 2
        held.append((pieces, b"".join(pieces)))
    plane.close()
    for round_number, (pieces, whole) in enumerate(held):
        assert b"".join(pieces) == whole
        entities = json.loads(whole)["entities"]
        assert [entity["entity_id"] for entity in entities] == names
        assert {entity["fields"]["snr_db"] for entity in entities} == {round_number + 0.5}
    with pytest.raises(TypeError, match="read-only"):
        held[0][0][1][0] = 0
