"""A request is answered, stored and counted the same by the front and by the application."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from .api import at, record
from .ways import (
    CHANGES,
    EXEMPT,
    ORIGIN,
    SETTINGS,
    Ask,
    Await,
    Change,
    Send,
    both_ways,
    differences,
)

TOPOLOGY = f"/topology?as_of_utc={at(3600)}&freshness_seconds=3600"
SERIES = f"/topology/series?start={at(0)}&end={at(3600)}&entity_id=e1"
READS = (
    *(TOPOLOGY, f"{TOPOLOGY}&measurement=link", f"{TOPOLOGY}&measurement=pool_interval"),
    *(f"{TOPOLOGY}&measurement=nothing", f"{TOPOLOGY}&as_of_utc={at(0)}", f"{TOPOLOGY}&other=1"),
    *("/topology?freshness_seconds=0&as_of_utc=now", "/topology?measurement=%FF", "/topology/"),
    *(SERIES, f"{SERIES}&measurement=link", f"{SERIES}&measurement=link&entity_id=e2&entity_id=x"),
    *(f"{SERIES}&measurement=link&interval=1m&agg={agg}" for agg in ("mean", "last", "most")),
    *(
        f"{SERIES}&measurement=link&fields=snr_db,note,",
        f"{SERIES}&agg=mean",
        f"{SERIES}&measurement=",
    ),
    *(f"{SERIES}&start={at(0)}", f"{SERIES}&entity_id=", f"{SERIES}&entity_id=%00"),
    *("/topology", "/topology/series", "/topology/series?entity_id=e1&start=2001-01-01T00:00:00Z"),
    f"/topology/series?entity_id=e1&start={at(0)}&end={at(9000)}",
)


@pytest.fixture(scope="module")
def both(disk):
    """Runs a program both ways; gives what came of it each way."""
    folder, _ = disk
    with both_ways(folder / "ways", "http") as both:
        yield both


def batch(*records):
    return json.dumps(records).encode()


def good(number, **fields):
    return record(at(number), f"e{number % 3}", **fields)


RECORDS = (
    good(1),
    good(2, snr_db=-0.5, ok=True, note="é"),
    good(3, other=1, more=2, most=3),
    {**good(4), "tags": {}},
    {**good(5), "time": "2001-01-01T00:00:00Z"},
    {**good(6), "time": "yesterday"},
    {**good(7), "fields": {}},
    {**good(8), "fields": {"snr_db": None}},
    {**good(9), "tags": {"entity_id": 7}},
    {**good(10), "unknown": 1},
    {"measurement": "link"},
    None,
    7,
)
BODIES = (
    b"",
    b"[]",
    b"{}",
    b"[",
    b"null",
    b"\xff",
    b'[{"a":1}]x',
    b" [ ] ",
    batch(*[None] * 1001),
    batch(*[good(1)] * 12),
)

bodies = st.lists(st.sampled_from(RECORDS) | st.just(good(1)), min_size=1, max_size=4).map(
    lambda records: batch(*records)
) | st.sampled_from(BODIES)
JSON = ("Content-Type", "application/json")
fields = st.lists(
    st.sampled_from(
        [
            JSON,
            JSON,
            ("Content-Type", "application/problem+json; charset=utf-8"),
            ("Content-Type", "text/csv"),
            ("Content-Encoding", "identity"),
            ("Content-Encoding", "gzip"),
            ("Origin", ORIGIN),
            ("Origin", "https://other.example"),
            ("Accept", "text/html"),
            ("Connection", "keep-alive"),
            ("X-Request-Id", "mine"),
        ]
    ),
    max_size=3,
    unique_by=lambda field: field[0],
).map(tuple)
clients = st.sampled_from([EXEMPT] * 6 + [1, 2])
keys = st.sampled_from(
    ["writer"] * 8 + ["second", "second", "reader", "elsewhere", "unknown", None]
)
plain = st.builds(Ask, body=bodies, fields=fields, client=clients, key=keys)
usual = st.builds(Ask, body=bodies, fields=st.just((JSON,)))
reads = st.builds(
    Ask,
    method=st.sampled_from(["GET"] * 4 + ["HEAD"]),
    target=st.sampled_from(READS),
    fields=fields,
    client=clients,
    key=keys,
)
odd = st.one_of(
    st.builds(Ask, body=bodies, target=st.sampled_from(["/telemetry?a=1", "/telemetry/", "/t"])),
    st.builds(Ask, method=st.sampled_from(["GET", "PUT", "OPTIONS", "HEAD", "DELETE"])),
    st.builds(Ask, method=st.just("GET"), target=st.just("/health")),
    st.builds(Ask, method=st.sampled_from(["POST", "OPTIONS"]), target=st.sampled_from(READS)),
    st.builds(Ask, bodies, method=st.just("GET"), target=st.just(SERIES)),
    st.builds(Ask, method=st.just("GET"), target=st.just(SERIES), version=st.just("HTTP/1.0")),
    st.builds(Ask, body=bodies, version=st.just("HTTP/1.0")),
    st.builds(Ask, body=bodies, fields=st.just((JSON, ("Connection", "close")))),
    st.builds(Ask, length=st.none(), fields=st.just((JSON,))),
    st.builds(Ask, length=st.none(), fields=st.just((JSON, ("Transfer-Encoding", "chunked")))),
    st.builds(Ask, length=st.just(2_000_000), fields=st.just((JSON,))),
    st.builds(Ask, fields=st.just((("X-Api-Key", "another"),)), body=bodies),
)
asks = st.lists(usual | plain | reads | odd, min_size=2, max_size=10).map(tuple)
cuts = st.lists(st.integers(0, 4_000), max_size=6).map(tuple) | st.just(tuple(range(2_000)))
sends = st.builds(Send, asks, st.just(()) | cuts)
shorts = st.builds(
    Send,
    st.builds(Ask, body=bodies, length=st.integers(2, 3_000)).map(lambda ask: (ask,)),
    ends=st.just(value=True),
)
changes = st.sampled_from((*CHANGES, Change("disable"), Change("enable")))
steps = sends | sends | sends | shorts | st.builds(Await, usual | plain) | changes
WRITE = Ask(batch(good(1)), fields=(JSON,))
TWICE = Send((WRITE,) * 2)
FROM_ONE = Send((replace(WRITE, client=1),) * 3)
ALL_READS = Send(
    tuple(
        Ask(method=method, target=target, length=None)
        for target in READS
        for method in ("GET", "HEAD")
    )
)
NO_RIGHTS = Send((replace(WRITE, key=None),) * 2 + (replace(WRITE, key="reader"),) * 2)
BAD_KEYS = Send((replace(WRITE, client=1, key="unknown"),) * 3)
ORIGINS = Send(
    tuple(
        replace(WRITE, fields=fields)
        for fields in ((JSON,), (JSON, ("Origin", ORIGIN)), (JSON, ("Origin", "https://a")))
        for _ in range(3)
    )
)


def test_only_one_way_leads_to_the_application(both):
    """Else the programs below would compare one way with itself."""
    by_front, by_application = both([TWICE, ALL_READS])
    assert 2 < by_front.answered_by_front < 2 + 2 * len(READS)  # refusals of reads are not
    assert by_application.answered_by_front == 0
    assert by_front.log


def test_the_front_answers_refusals_of_which_there_may_be_many(both):
    by_front, by_application = both([NO_RIGHTS])
    assert by_front.answered_by_front == len(NO_RIGHTS.asks)
    assert by_application.answered_by_front == 0


@settings(
    max_examples=min(settings().max_examples, 1_500),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(steps, min_size=4, max_size=12))
@example([TWICE, Change("revoke", "writer"), TWICE, Change("renew", "writer"), TWICE])
@example([TWICE, Change("disable"), TWICE, Change("enable"), TWICE])
@example([TWICE, Change("exclude"), TWICE, Change("entitle"), TWICE])
@example([TWICE, Change("move_away"), TWICE, Change("move_back"), TWICE])
@example([ALL_READS, TWICE, ALL_READS, Change("disable"), ALL_READS])
@example([FROM_ONE, FROM_ONE, FROM_ONE])
@example([FROM_ONE, BAD_KEYS, FROM_ONE, TWICE])
@example([NO_RIGHTS, Change("disable"), NO_RIGHTS, TWICE])
@example([Change("set", "cors"), ORIGINS, Change("set", "usual"), ORIGINS])
@example([step for name in SETTINGS for step in (TWICE, Change("set", name), TWICE)])
def test_both_ways_answer_and_account_alike(both, program):
    by_front, by_application = both(program)
    found = differences(by_front, by_application)
    assert not found, "\n".join(found)
    assert by_application.answered_by_front == 0
