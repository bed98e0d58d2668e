"""Stored rows as a stream of Arrow: the rows of a scan, for keys that may read them."""

from __future__ import annotations

from urllib.parse import urlencode

import polars as pl
import pytest

from fleetcast.engine import encode_records

from .serving import NOW_NS, NOW_S, Served, time_of

PATH = "/arrow/v1/scan"
EVER = {"start": time_of(0), "end": time_of(2 * NOW_S)}


def record(number, measurement="link", **fields):
    tags = {"entity_id": f"l{number % 3}", "name": 'é"'[: number % 3]}
    time = time_of(NOW_S - 86_400 + 600 * number)
    return {"measurement": measurement, "time": time, "tags": tags, "fields": fields}


RECORDS = [
    *(record(number, x=number / 8, up=number % 2 == 0, note="é" * number) for number in range(9)),
    *(record(number, x=-0.0) for number in range(200, 203)),
    *(record(number, "pool", state=float(number)) for number in range(10)),
    *(record(number, "box", state=f"s{number}") for number in range(10)),
]


@pytest.fixture
def served():
    served = Served()
    served.stores.key("writer", scopes=["telemetry:write"])
    plane = served.stores.plane()
    plane.write_json(encode_records(RECORDS[:20]), now_ns=NOW_NS)
    plane.compact(whole=True, now_ns=NOW_NS)
    plane.write_json(encode_records(RECORDS[20:]), now_ns=NOW_NS)
    return served


def read(served, key="reader", **parameters):
    headers = {"x-api-key": served.stores.text(key)}
    query = urlencode(parameters, doseq=True)
    return served.client.simulate_get(PATH, headers=headers, query_string=query)


def rows(answer):
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    return pl.read_ipc_stream(answer.content)


def test_the_rows_are_those_of_a_scan(served):
    expected = pl.DataFrame(served.stores.plane().scan(0, 2**62))
    found = rows(read(served, **EVER))
    assert found.schema == expected.schema
    assert found.equals(expected)
    assert len(found) == len(RECORDS)


@pytest.mark.parametrize(
    ("parameters", "chosen"),
    [
        ({"measurement": "pool"}, {"measurements": ["pool"]}),
        ({"measurement": ["pool", "box"]}, {"measurements": ["pool", "box"]}),
        ({"entity_id": ["l1", "l2"]}, {"entities": ["l1", "l2"]}),
        ({"fields": "up"}, {"fields": ["up"]}),
        ({"fields": "up,state"}, {"fields": ["up", "state"]}),
        ({"fields": "up", "every_row": "true"}, {"fields": ["up"], "every_row": True}),
        ({"measurement": "none"}, {"measurements": ["none"]}),
    ],
)
def test_parameters_choose_rows_as_those_of_a_scan(served, parameters, chosen):
    expected = pl.DataFrame(served.stores.plane().scan(0, 2**62, **chosen))
    found = rows(read(served, **EVER, **parameters))
    assert found.equals(expected)


def test_a_limit_ends_the_stream(served):
    expected = pl.DataFrame(served.stores.plane().scan(0, 2**62))
    some = rows(read(served, **EVER, limit=5))
    assert 5 <= len(some) < len(expected)
    assert some.equals(expected.head(len(some)))
    assert rows(read(served, **EVER, limit=0)).equals(expected.clear())


@pytest.mark.parametrize(
    ("key", "parameters", "status", "code"),
    [
        ("writer", EVER, 403, "insufficient_scope"),
        ("reader", EVER | {"end": EVER["start"]}, 422, "invalid_range"),
        ("reader", EVER | {"limit": "-1"}, 422, "invalid_range"),
        ("reader", {"start": EVER["start"]}, 422, None),
        ("reader", EVER | {"end": "noon"}, 422, None),
        ("reader", EVER | {"limit": "many"}, 422, None),
    ],
)
def test_requests_are_refused_as_over_http(served, key, parameters, status, code):
    answer = read(served, key, **parameters)
    assert answer.status_code == status
    assert answer.json.get("error") == code
    if code is None:
        assert answer.json["detail"][0]["loc"][0] == "query"
