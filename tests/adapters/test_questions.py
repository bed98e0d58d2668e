"""Prometheus' HTTP API on the adapter listener: the language itself is tested in `rust/promql`."""

from __future__ import annotations

import json
import struct
import time
from urllib.parse import urlencode

import pytest

from fleetcast.config import Settings
from fleetcast.config.sections import Adapters

from .messages import field, number, snappy, time_series, unsnapped, varint
from .serving import NOW_NS, NOW_S, SECOND_NS, Served, time_of

FORM = {"content-type": "application/x-www-form-urlencoded"}
MANY_EXPRESSIONS = ",".join([r'job!~"(\\w{9}){9}"'] * 200)
PROTOBUF = {"content-type": "application/x-protobuf", "content-encoding": "snappy"}


@pytest.fixture(scope="module")
def served():
    """Records of links, and samples that Prometheus sent, the last of them at `NOW_S`."""
    served = Served()
    served.stores.key("writer", scopes=["telemetry:write"])
    plane = served.stores.plane()
    records = [
        {
            "measurement": "link",
            "time": time_of(NOW_S - 60 + 30 * at),
            "tags": {"entity_id": entity, "rain-zone": "K"},
            "fields": {"snr-db": 10.0 + at, "locked": True, "note": "x"},
        }
        for at in range(3)
        for entity in ("a", "b")
    ]
    plane.write_json(json.dumps(records).encode(), now_ns=NOW_NS)
    labels = {"__name__": "up", "instance": "n:9100", "job": "node"}
    samples = [(1.0, (NOW_S - 30) * 1000), (0.0, NOW_S * 1000)]
    body = snappy(time_series(labels, samples))
    assert served.post("/api/v1/write", body, {"x-api-key": "good", **PROTOBUF}).status_code == 204
    return served


def ask(served, path, key="reader", **parameters):
    headers = {"x-api-key": served.stores.text(key)}
    query = urlencode(parameters, doseq=True)
    return served.client.simulate_get(f"/api/v1/{path}", headers=headers, query_string=query)


def data(served, path, **parameters):
    answer = ask(served, path, **parameters)
    assert (answer.status_code, answer.json["status"]) == (200, "success"), answer.text
    return answer.json["data"]


def test_a_field_is_a_metric_and_each_tag_set_a_series(served):
    found = data(served, "query", query="snr_db", time=NOW_S)
    metrics = [
        {"__name__": "snr_db", "entity_id": name, "measurement": "link", "rain_zone": "K"}
        for name in ("a", "b")
    ]
    expected = [{"metric": metric, "value": [NOW_S, "12"]} for metric in metrics]
    assert found == {"resultType": "vector", "result": expected}
    assert data(served, "query", query="sum(locked)", time=NOW_S)["result"][0]["value"][1] == "2"
    assert data(served, "query", query="note", time=NOW_S)["result"] == []


def test_samples_of_remote_write_have_the_labels_that_they_came_with(served):
    ((metric, value),) = (
        item.values() for item in data(served, "query", query="up", time=NOW_S)["result"]
    )
    assert metric == {"__name__": "up", "instance": "n:9100", "job": "node"}
    assert value == [NOW_S, "0"]


def test_a_range_has_a_value_at_each_step(served):
    span = {"start": NOW_S - 60, "end": NOW_S, "step": "30s"}
    found = data(served, "query_range", query='max(rate(snr_db{entity_id=~"a|b"}[1m]))', **span)
    ((metric, values),) = (item.values() for item in found["result"])
    assert (found["resultType"], metric) == ("matrix", {})
    assert [value[0] for value in values] == [NOW_S - 30, NOW_S]


def test_names_are_those_that_were_written(served):
    assert data(served, "label/__name__/values") == ["locked", "snr_db", "up"]
    assert data(served, "label/entity_id/values") == ["a", "b"]
    assert data(served, "label/instance/values", **{"match[]": "up"}) == ["n:9100"]
    names = ["__name__", "instance", "job"]
    assert data(served, "labels", **{"match[]": "up"}) == names
    assert data(served, "labels") == sorted([*names, "entity_id", "measurement", "rain_zone"])
    matched = data(served, "series", **{"match[]": ['up{job="node"}', 'locked{entity_id="a"}']})
    assert [labels["__name__"] for labels in matched] == ["locked", "up"]
    assert data(served, "series", **{"match[]": "up", "end": NOW_S - 3600}) == []
    assert set(data(served, "metadata")) == {"locked", "snr_db", "up"}
    assert data(served, "status/buildinfo")["version"] == "2.42.0"


def test_a_form_in_the_body_is_as_good_as_a_query_string(served):
    body = urlencode({"query": "up", "time": NOW_S}).encode()
    answer = served.post("/api/v1/query", body, {"x-api-key": "reader", **FORM})
    assert answer.json["data"] == data(served, "query", query="up", time=NOW_S)
    other = {"x-api-key": "reader", "content-type": "application/json"}
    assert served.post("/api/v1/query", body, other).status_code == 415


@pytest.mark.parametrize(
    ("parameters", "status", "kind", "words"),
    [
        ({"query": "sum("}, 400, "bad_data", "query"),
        ({"query": "holt_winters(up[5m], 0.5, 0.5)"}, 400, "bad_data", "holt_winters"),
        ({"query": "up", "time": "soon"}, 400, "bad_data", "timestamp"),
        ({"query": "up + on(job) group_left() up or up[1m]"}, 400, "bad_data", ""),
        ({"query": "sum(" * 5000}, 400, "bad_data", "16384 bytes"),
        ({"query": "(" * 16_000}, 400, "bad_data", ""),
        ({"query": "-" * 16_000 + "1"}, 200, None, ""),
        ({"query": "1" + "+1" * 8_000}, 200, None, ""),
        ({"query": "up[1e400]"}, 400, "bad_data", ""),
        ({"query": f"up{{{MANY_EXPRESSIONS}}}"}, 400, "bad_data", "16777216 bytes"),
    ],
)
def test_a_question_that_is_refused_says_why(served, parameters, status, kind, words):
    answer = ask(served, "query", **parameters)
    assert (answer.status_code, answer.json.get("errorType")) == (status, kind), answer.text[:300]
    assert words in answer.json.get("error", "")


def test_a_question_needs_a_key_that_may_read(served):
    assert ask(served, "query", "reader", query="up").status_code == 200
    answer = ask(served, "query", "writer", query="up")
    assert (answer.status_code, answer.json["errorType"]) == (403, "bad_data")
    answer = served.client.simulate_get("/api/v1/query", query_string="query=up")
    assert (answer.status_code, answer.json["errorType"]) == (401, "bad_data")


def test_a_name_of_a_label_has_no_slash(served):
    assert ask(served, "label/a%2Fb/values").status_code == 404


def test_a_question_beyond_a_bound_says_which():
    served = Served(settings=Settings(adapters=Adapters(query_samples_max=3)))
    answer = ask(served, "query_range", query="vector(1)", start=0, end=10, step=1)
    assert (answer.status_code, answer.json["errorType"]) == (422, "execution")
    assert "query_samples_max" in answer.json["error"]


def read(served, message, name="reader", **fields):
    headers = {"x-api-key": served.stores.text(name), **PROTOBUF, **fields}
    return served.client.simulate_post("/api/v1/read", headers=headers, body=message)


def query_of(metric, start_s, end_s):
    """`ReadRequest.queries` with one condition."""
    condition = field(2, "__name__") + field(3, metric)
    return field(1, number(1, start_s * 1000) + number(2, end_s * 1000) + field(3, condition))


def test_remote_read_answers_a_message_in_snappy(served):
    answer = read(served, snappy(query_of("up", NOW_S - 60, NOW_S - 1)))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-protobuf"
    assert answer.headers["content-encoding"] == "snappy"
    labels = {"__name__": "up", "instance": "n:9100", "job": "node"}
    expected = time_series(labels, [(1.0, (NOW_S - 30) * 1000)])
    assert unsnapped(answer.content) == field(1, expected)


def test_a_remote_read_that_accepts_chunks_has_a_frame_for_each_series(served):
    streamed = number(2, 1)
    answer = read(served, snappy(query_of("up", NOW_S - 60, NOW_S - 1) + streamed))
    assert answer.status_code == 200
    expected = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse"
    assert answer.headers["content-type"] == expected
    assert "content-encoding" not in answer.headers
    time_ms = (NOW_S - 30) * 1000
    names = {"__name__": "up", "instance": "n:9100", "job": "node"}
    labels = b"".join(field(1, field(1, name) + field(2, text)) for name, text in names.items())
    data = b"\0\1" + varint(time_ms << 1) + struct.pack(">d", 1.0)
    chunk = number(1, time_ms) + number(2, time_ms) + number(3, 1) + field(4, data)
    message = field(1, labels + field(2, chunk))
    assert answer.content[:1] == varint(len(message))
    assert answer.content[5:] == message  # after the sum of the frame


def test_a_remote_read_without_samples_has_a_result_for_each_query(served):
    answer = read(served, snappy(query_of("none", 0, NOW_S) * 2))
    assert unsnapped(answer.content) == field(1, "") * 2


@pytest.mark.parametrize(
    ("message", "fields", "status", "words"),
    [
        (snappy(b"\x0a\x05"), {}, 400, "not a message of remote read"),
        (b"\xff", {}, 400, ""),
        (snappy(query_of("up", 1, 0)), {}, 400, "before start"),
        (b"x", {"content-encoding": "identity"}, 415, ""),
        (snappy(b""), {"content-type": "application/json"}, 415, ""),
    ],
    ids=["message", "snappy", "times", "coding", "type"],
)
def test_a_remote_read_that_is_refused_says_why_as_questions_do(
    served, message, fields, status, words
):
    answer = read(served, message, **fields)
    assert (answer.status_code, answer.json["errorType"]) == (status, "bad_data")
    assert words in answer.json["error"]


def test_a_remote_read_needs_a_key_that_may_read(served):
    assert read(served, snappy(b""), "writer").status_code == 403
    answer = served.client.simulate_get("/api/v1/read", headers={})
    assert answer.status_code == 405


def test_samples_and_labels_of_an_answer_count():
    served = Served(settings=Settings(adapters=Adapters(query_samples_max=250)))
    records = [
        {
            "measurement": "link",
            "time": time_of(NOW_S - at),
            "tags": {"entity_id": "a"},
            "fields": {"snr": 1.0},
        }
        for at in range(100)
    ]
    served.stores.plane().write_json(json.dumps(records).encode(), now_ns=NOW_NS)
    assert ask(served, "query", query="sum_over_time(snr[5m])", time=NOW_S).status_code == 200
    answer = ask(served, "query", query="snr[5m]", time=NOW_S)
    assert (answer.status_code, answer.json["errorType"]) == (422, "execution")
    assert "query_samples_max" in answer.json["error"]


def test_o7_an_answer_says_if_there_are_hours_in_place_of_samples():
    """Rows are hourly, of four days, and kept for one day."""
    served = Served()
    plane = served.stores.plane()
    now_ns = time.time_ns()
    now_s = now_ns // SECOND_NS
    rows = [
        {
            "measurement": "link",
            "time": time_of(now_s - 3600 * hours),
            "tags": {"entity_id": "a"},
            "fields": {"x": 1.0},
        }
        for hours in range(96)
    ]
    plane.write_json(json.dumps(rows).encode(), now_ns=now_ns)
    plane.set_retention(86_400)
    plane.keep_hours(365 * 86_400)

    def warnings(hours):
        span = {"start": now_s - hours * 3600, "end": now_s, "step": 3600}
        answer = ask(served, "query_range", query="x", **span)
        assert (answer.status_code, len(answer.json["data"]["result"])) == (200, 1)
        return answer.json.get("warnings")

    assert warnings(80) is None  # no row has become an hour
    plane.compact(whole=True, now_ns=now_ns)
    (warning,) = warnings(80)
    assert warning.startswith(f"samples are kept from {time_of(now_s - 86_400)[:10]}")
    assert warning.endswith("which only the series endpoint answers (interval=1h)")
    assert warnings(12) is None
