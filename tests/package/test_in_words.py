"""Results say what they hold, and arguments that do not fit are refused in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest

from fleetcast import Client, Engine, GatewayWriter, Plane, StoreExists, TextFormat, encode_records
from fleetcast.client import RefusedBatch

MASTER_KEY = bytes(range(32))
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = AT + timedelta(minutes=1)
RECORD = {
    "measurement": "link",
    "time": AT,
    "tags": {"entity_id": "l1"},
    "fields": {"snr_db": 12.5},
}


@pytest.fixture
def plane():
    plane = Plane.in_memory("acme")
    plane.write_json(encode_records([RECORD]), now_ns=NOW)
    return plane


def test_results_say_what_they_hold(plane):
    old = RECORD | {"time": datetime(1999, 1, 1, tzinfo=UTC)}
    written = plane.write_json(encode_records([RECORD, old]), now_ns=NOW)
    assert repr(written) == "WriteResult(accepted=1, rejected=1)"
    deleted = plane.delete(AT, NOW, measurements=["pool"])
    counts = "rows=0, entities=0, measurements=[], first_ns=None, last_ns=None, hours=0"
    assert repr(deleted) == f"Deleted({counts})"
    assert repr(plane.stats()).startswith(
        "Stats(rows=2, values=2, batches=2, rejected=1, series=1,"
    )
    assert repr(plane) == "Plane('acme')"
    assert repr(plane.scan(AT, NOW)) == "RowStream(time, measurement, tags, snr_db)"
    assert repr(next(plane.scan(AT, NOW))) == "RowBatch(2 rows of link)"
    assert repr(TextFormat.lines("ms")) == "TextFormat.lines('ms')"
    plane.close()
    assert repr(plane) == "Plane(closed)"


def test_an_engine_says_what_it_holds_and_ends_with_its_block(tmp_path):
    with Engine(str(tmp_path / "my-planes"), MASTER_KEY) as engine:
        for account in ("a", "b", "b"):
            engine.create_plane(account, exist_ok=True)
        with pytest.raises(StoreExists):
            engine.create_plane("a")
        assert repr(engine) == f"Engine('{tmp_path}/my-planes', 2 planes)"
        plane = engine.plane("a", tenant_key="acme")
    assert repr(plane) == "Plane(closed)"


@pytest.mark.parametrize(
    "start",
    [
        AT,
        AT.astimezone(timezone(timedelta(hours=5))),
        AT.replace(tzinfo=None),
        "2026-03-01T12:00:00Z",
        "2026-03-01T12:00:00",
        int(AT.timestamp()) * 1_000_000_000,
    ],
    ids=["UTC", "zone", "naive", "text", "naive text", "int"],
)
def test_a_time_may_have_any_form(plane, start):
    assert pl.DataFrame(plane.scan(start, NOW)).height == 1
    series = {"entity_ids": ["l1"], "measurement": "link"}
    assert pl.DataFrame(plane.series_frame(start_ns=start, **series)).height == 1
    assert pl.DataFrame(plane.latest_frame("link", as_of_ns=start)).is_empty()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda p: p.write_json([RECORD]), TypeError, "bytes, not list.*encode_records"),
        (lambda p: p.write_json("[]"), TypeError, "bytes, not str.*encode"),
        (lambda p: p.write_protobuf([b""]), TypeError, "bytes, not list.*encode_protobuf"),
        (lambda p: p.write_lines("link x=1"), TypeError, "bytes, not str"),
        (lambda p: p.write_arrow([RECORD]), TypeError, "a list is no table"),
        (lambda p: p.scan(1.5, 2), TypeError, "a float is not a time: give a datetime"),
        (lambda p: p.scan(AT, "noon"), ValueError, "noon"),
        (lambda p: p.scan(0, 2**70), ValueError, "not in the years 1678 to 2261"),
        (
            lambda p: p.series_frame(entity_ids=["l1"], start_ns=AT, interval="2m"),
            ValueError,
            'no interval "2m": give one of 15s, 30s, 1m, 5m, 15m, 1h',
        ),
        (lambda _: Engine("x", b"short"), ValueError, "a master key has 32 bytes, not 5"),
        (lambda _: Client("localhost:8080", "k"), ValueError, "such as http://127.0.0.1:8080"),
        (
            lambda _: GatewayWriter("http://localhost:8080", "k", on_refused=print),
            ValueError,
            "is not HOST:PORT of a gRPC listener",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_words(plane, call, error, words):
    with pytest.raises(error, match=words):
        call(plane)


def test_a_value_that_no_record_can_hold_is_named_with_its_record():
    faulty = RECORD | {"fields": {"snr_db": 1.0, "rtt_ms": float("nan")}}
    with pytest.raises(ValueError, match=r"NaN|nan|JSON") as raised:
        encode_records([RECORD, faulty])
    assert raised.value.__notes__ == ["record 1: fields.rtt_ms"]
    with pytest.raises(TypeError) as raised:
        encode_records([RECORD | {"tags": {"entity_id": {1}}}])
    assert raised.value.__notes__ == ["record 0: tags.entity_id"]


def test_a_batch_that_a_server_refused_says_why():
    assert repr(RefusedBatch(b"", "UNAUTHENTICATED", "auth_failed")) == (
        "RefusedBatch(0 records, 'UNAUTHENTICATED: auth_failed "
        "(the service does not know this key, or the key has ended)')"
    )
