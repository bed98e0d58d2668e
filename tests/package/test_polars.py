"""`fleetcast.polars.scan` gives what a whole scan gives, and lets the engine choose the rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from fleetcast import Engine, Plane, encode_records
from fleetcast.polars import scan
from fleetcast.polars.choice import Choice

START = datetime(2026, 3, 1, tzinfo=UTC)
END = START + timedelta(days=2)
NOW = END + timedelta(hours=1)
TAGS = pl.col("tags").map
LINK, NORTH = pl.col("measurement") == "link", TAGS.get("site") == "north"
NOON = START + timedelta(hours=12)


def record(number, measurement="link", **fields):
    tags = {"entity_id": f"l{number % 5}", "site": ["north", "south"][number % 2]}
    if number % 7 == 0:
        del tags["entity_id"]
    time = START + timedelta(minutes=10 * number)
    return {"measurement": measurement, "time": time, "tags": tags, "fields": fields}


RECORDS = [
    *(record(number, x=float(number), mode=f"m{number % 3}") for number in range(200)),
    *(record(number, x=float(number), up=number % 2 == 0) for number in range(200, 230)),
    *(record(number, "pool", mode=float(number), entity_id=1.5) for number in range(50)),
]


@pytest.fixture(scope="module")
def plane():
    plane = Plane.in_memory("acme")
    plane.write_json(encode_records(RECORDS[:150]), now_ns=NOW)
    plane.compact(whole=True, now_ns=NOW)
    plane.write_json(encode_records(RECORDS[150:]), now_ns=NOW)
    yield plane
    plane.close()


def whole(plane):
    """The rows of a whole scan, with the columns of a lazy one."""
    rows = pl.DataFrame(plane.scan(START, END))
    entity = TAGS.get("entity_id").alias("entity_id")
    rest = [*sorted(name for name in rows.columns if name not in ("time", "measurement", "tags"))]
    return rows.rename({"entity_id": "entity_id:float"}).select(
        "time",
        "measurement",
        entity,
        "tags",
        *(n.replace("entity_id", "entity_id:float") for n in rest),
    )


def test_all_columns_are_those_of_a_scan(plane):
    rows = scan(plane, start=START, end=END)
    expected = whole(plane)
    assert rows.collect_schema() == expected.schema
    assert rows.collect().equals(expected)
    assert len(expected) > 200


@pytest.mark.parametrize(
    "condition",
    [
        pl.col("entity_id") == "l1",
        pl.col("entity_id").is_in(["l1", "l2", "none", ""]),
        pl.col("entity_id") == "",
        pl.col("entity_id").is_null(),
        pl.col("entity_id").is_in(["l1", None], nulls_equal=True),
        LINK,
        LINK & NORTH & (pl.col("x") > 20),
        TAGS.get("site").is_in(["south", "east"]),
        (pl.col("time") >= NOON) & (pl.col("time") < NOON + timedelta(hours=3)),
        pl.col("time").is_between(NOON, NOON + timedelta(hours=3), closed="none"),
        pl.col("time") == NOON,
        pl.col("time").is_in([NOON, END]),
        (pl.col("time") > NOON) & (pl.col("time") <= NOON + timedelta(hours=3)) & LINK,
        (pl.col("entity_id") == "l1") | LINK,
        ~(pl.col("entity_id") == "l1"),
        pl.col("entity_id") == pl.lit(None, pl.String),
        (pl.col("entity_id") == "l1") & (pl.col("entity_id") == "l2"),
        pl.col("measurement").is_in(["pool"]) & (pl.col("mode:float") > 3),
        pl.col("x").map_batches(lambda x: x > 20, pl.Boolean) & LINK,
    ],
    ids=str,
)
def test_a_condition_leaves_the_rows_of_a_whole_scan(plane, condition):
    rows = scan(plane, start=START, end=END)
    expected = whole(plane).filter(condition)
    assert rows.filter(condition).collect().equals(expected)
    columns = ["x", "time"]
    assert rows.filter(condition).select(columns).collect().equals(expected.select(columns))
    assert rows.filter(condition).select(pl.len()).collect().item() == len(expected)


def test_heads_and_columns_are_those_of_a_whole_scan(plane):
    rows = scan(plane, start=START, end=END)
    expected = whole(plane)
    assert rows.head(7).collect().equals(expected.head(7))
    assert rows.head(100).filter(NORTH).collect().equals(expected.head(100).filter(NORTH))
    assert rows.filter(NORTH).head(7).collect().equals(expected.filter(NORTH).head(7))
    assert rows.select("up").collect().equals(expected.select("up"))


def nanoseconds(time):
    """A literal as a query of polars has it when it comes to a source."""
    return pl.lit(time, pl.Datetime("ns", "UTC"))


START_NS, END_NS = (int(time.timestamp()) * 10**9 for time in (START, END))
entity, time = pl.col("entity_id"), pl.col("time")


def test_the_engine_chooses_rows_by_what_it_understands():
    choice = Choice(0, 2**62, None)
    understood = choice.narrow(
        LINK
        & NORTH
        & entity.is_in(["l1", "l2"])
        & (entity == "l2")
        & time.is_between(nanoseconds(START), nanoseconds(END))
        & (pl.col("x") > 1)
        & ((entity == "l3") | NORTH)
    )
    assert not understood
    assert (choice.start_ns, choice.end_ns) == (START_NS, END_NS + 1)
    assert (choice.measurements, choice.entities) == ({"link"}, {"l2"})
    assert choice.tags == {"site": {"north"}}


@pytest.mark.parametrize(
    ("condition", "start_ns", "end_ns"),
    [
        ((time >= nanoseconds(START)) & (time < nanoseconds(END)), START_NS, END_NS),
        ((time > nanoseconds(START)) & (time <= nanoseconds(END)), START_NS + 1, END_NS + 1),
        (time == nanoseconds(START), START_NS, START_NS + 1),
        *(
            (
                time.is_between(nanoseconds(START), nanoseconds(END), closed=closed),
                START_NS + (closed in ("right", "none")),
                END_NS + (closed in ("right", "both")),
            )
            for closed in ("both", "left", "right", "none")
        ),
        (LINK & NORTH & entity.is_in(["l1", "l2"]), 0, 2**62),
    ],
    ids=str,
)
def test_a_condition_that_the_engine_understands_is_not_asked_again(condition, start_ns, end_ns):
    choice = Choice(0, 2**62, None)
    assert choice.narrow(condition)
    assert (choice.start_ns, choice.end_ns) == (start_ns, end_ns)


@pytest.mark.parametrize(
    "condition",
    [
        entity == "",
        entity != "l1",
        entity.is_in(["l1", None], nulls_equal=True),
        time.is_in([START, END]),
        entity == pl.Series(["l1", "l2"]),
        pl.col("x") == 1,
        time >= START,
    ],
    ids=str,
)
def test_a_condition_that_the_engine_does_not_understand_is_asked_again(condition):
    assert not Choice(0, 2**62, None).narrow(condition)


def test_a_field_has_its_plain_name_if_one_measurement_is_scanned(plane):
    rows = scan(plane, start="2026-03-01", end="2026-03-03", measurement="pool")
    assert [*rows.collect_schema()][4:] == ["entity_id:float", "mode"]
    assert rows.select("mode").collect()["mode"].sum() == sum(range(50))


def test_fields_are_known_by_their_names(plane):
    assert {*plane.fields("pool")} == {("mode", "float"), ("entity_id", "float")}
    assert ("mode", "text") in plane.fields()
    assert plane.fields("none") == []


def test_a_tenant_of_an_engine_is_scanned(tmp_path):
    with Engine(tmp_path, bytes(32)) as engine:
        engine.create_plane("acme")
        engine.plane("acme", "acme").write_json(encode_records(RECORDS[:3]), now_ns=NOW)
        assert scan(engine, tenant="acme", start=START, end=END).collect().height == 3
        with pytest.raises(ValueError, match="give tenant="):
            scan(engine, start=START, end=END)
