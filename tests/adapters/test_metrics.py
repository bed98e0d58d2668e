"""Remote write of Prometheus, and metrics of OpenTelemetry."""

from __future__ import annotations

import gzip
import itertools
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleetcast.config import Settings

from .messages import export, field, fixed, gauge, number, snappy, time_series, varint
from .serving import NOW_NS, NOW_S, Served, mapping_of, time_of

REMOTE_WRITE, OTLP = "/api/v1/write", "/v1/metrics"
PROTOBUF = {"x-api-key": "good", "content-type": "application/x-protobuf"}
SNAPPY = {**PROTOBUF, "content-encoding": "snappy"}


@pytest.fixture
def served():
    return Served()


@pytest.fixture(scope="module")
def renewed():
    """Gives the same application again, for a tenant that has nothing yet."""
    served, numbers = Served(), itertools.count()

    def renewed():
        served.stores.renew(f"tenant-{next(numbers)}")
        return served

    return renewed


def write(served, *series, headers=SNAPPY):
    return served.post(REMOTE_WRITE, snappy(b"".join(series)), headers)


def load(value=1.5, time=NOW_S, **labels):
    return time_series({"__name__": "load", "instance": "a", **labels}, [(value, time * 1000)])


ROW = ("telemetry", time_of(NOW_S), {"entity_id": "a"}, {"load": 1.5})


def test_samples_are_stored_and_204_says_so(served):
    answer = write(served, load())
    assert (answer.status_code, answer.content) == (204, b"")
    assert served.rows() == [ROW]


def test_metrics_are_stored_under_the_names_of_the_operator(tmp_path):
    table = '[[map]]\nfrom = "{0}"\nto = "link"\nprefix = "{1}"\nentity = "{2}"\n'
    served = Served(mapping_of(tmp_path, table.format("load", "node_", "host")))
    assert write(served, load(host="h")).status_code == 204
    body = export({"host": "o"}, gauge("load", [({}, NOW_NS, 2.0)]))
    assert served.post(OTLP, body, PROTOBUF).status_code == 200
    assert [(row[0], row[2], row[3]) for row in served.rows()] == [
        ("link", {"entity_id": "h", "instance": "a"}, {"node_load": 1.5}),
        ("link", {"entity_id": "o"}, {"node_load": 2.0}),
    ]


def test_what_prometheus_says_without_a_number_is_no_error(served):
    assert write(served, load(float("nan")), load(float("inf")), load()).status_code == 204
    assert served.rows() == [ROW]


def test_faulty_samples_are_named_and_the_others_stored(served):
    answer = write(served, load(time=5), load(), time_series({"a": "b"}, [(1.0, NOW_S * 1000)]))
    assert answer.status_code == 400
    assert answer.text == (
        "partial write: series 1: timestamp: Time should be 2000-01-01T00:00:00Z or later; "
        "series 3: __name__: Field required\n"
    )
    assert served.rows() == [ROW]


def bounded():
    settings = Settings()
    adapters = replace(settings.adapters, body_bytes_max=10_000, records_max=2)
    return Served(settings=replace(settings, adapters=adapters))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (snappy(b"\x0a\x05"), 400),
        (snappy(load())[:-1], 400),
        (b"", 400),
        (varint(2**32 - 1) + b"\x00a", 413),
        (varint(2**40) + b"\x00a", 400),
        (snappy(load() * 3), 413),
    ],
    ids=["no message", "cut", "empty", "bomb", "longer than snappy can be", "samples"],
)
def test_a_body_is_bounded_and_a_block_of_a_message(body, status):
    served = bounded()
    answer = served.post(REMOTE_WRITE, body, SNAPPY)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/plain")
    assert served.rows() == []


@pytest.mark.parametrize(
    ("path", "headers", "accepts"),
    [
        (REMOTE_WRITE, {}, "snappy"),
        (REMOTE_WRITE, {"content-encoding": "gzip"}, "snappy"),
        (REMOTE_WRITE, {"content-encoding": "snappy", "content-type": "text/plain"}, None),
        (OTLP, {"content-type": "application/json"}, None),
        (OTLP, {"content-encoding": "snappy"}, "identity, gzip"),
    ],
)
def test_another_coding_or_type_is_refused(served, path, headers, accepts):
    answer = served.post(path, b"x", {**PROTOBUF, **headers})
    assert answer.status_code == 415
    assert answer.headers.get("accept-encoding") == accepts


@pytest.mark.parametrize(
    ("media_type", "status"),
    [
        ("application/x-protobuf;proto=io.prometheus.write.v2.Request", 415),
        ('Application/X-Protobuf; proto="io.prometheus.write.v2.Request"', 415),
        ("application/x-protobuf;proto=", 415),
        ("application/x-protobuf;proto=prometheus.WriteRequest", 204),
        ('application/x-protobuf; Proto="prometheus.WriteRequest"', 204),
        ("application/x-protobuf; charset=utf-8", 204),
    ],
)
def test_remote_write_2_is_refused_and_told_which_version_is_taken(served, media_type, status):
    # A message of 2.0 has no field that one of 1.0 has, so it would be stored as nothing.
    message_of_2 = field(4, "") + field(4, "load") + field(5, field(2, b""))
    body = snappy(message_of_2 if status == 415 else load())
    answer = served.post(REMOTE_WRITE, body, {**SNAPPY, "content-type": media_type})
    assert answer.status_code == status
    assert ("prometheus.WriteRequest of remote write 1.0" in answer.text) == (status == 415)
    assert served.rows() == ([] if status == 415 else [ROW])


def test_data_points_are_stored_and_200_says_so(served):
    points = [({"core": "0"}, NOW_NS, 1.5), ({"core": "1"}, NOW_NS, 2.5)]
    body = export({"service.name": "s"}, gauge("load", points))
    for coding, packed in (("identity", body), ("gzip", gzip.compress(body))):
        answer = served.post(OTLP, packed, {**PROTOBUF, "content-encoding": coding})
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["content-type"] == "application/x-protobuf"
    rows = [(row[2], row[3]) for row in served.rows()]
    expected = [
        ({"core": core, "entity_id": "s"}, {"load": v})
        for core, v in zip("01", (1.5, 2.5), strict=True)
    ]
    assert rows == [*expected, *expected]


def test_points_that_are_not_stored_are_counted_in_the_partial_success(served):
    summary = field(2, field(1, "lag") + field(11, field(1, fixed(3, NOW_NS)) * 2))
    body = export({"host.name": "a"}, gauge("load", [({}, NOW_NS, 1.5)]) + summary)
    answer = served.post(OTLP, body, PROTOBUF)
    assert answer.status_code == 200
    reason = "lag: exponential histograms and summaries are not stored"
    message = f"data point 2: {reason}; data point 3: {reason}"
    assert answer.content == field(1, number(1, 2) + field(2, message))
    assert served.rows() == [ROW]


def test_a_refusal_is_a_status_of_google_rpc(served):
    answer = served.post(OTLP, b"\x0a\x05", PROTOBUF)
    assert answer.status_code == 400
    assert answer.content.startswith(number(1, 3))
    answer = served.post(OTLP, b"", {"content-type": "application/x-protobuf"})
    assert answer.status_code == 401
    assert answer.content.startswith(number(1, 16))
    assert served.post(OTLP, b"", PROTOBUF).status_code == 200


KEYS = ["instance", "job", "z"]
LABELS = st.dictionaries(st.sampled_from(KEYS), st.text(max_size=3))
ANY_ORDER = st.tuples(LABELS, st.permutations(KEYS)).map(
    lambda drawn: {key: drawn[0][key] for key in drawn[1] if key in drawn[0]}
)
SAMPLES = st.lists(
    st.tuples(
        st.sampled_from(["load", "heat", "x"]),
        ANY_ORDER,
        st.integers(0, 3),
        st.floats(),
    ),
    max_size=12,
)


def model(samples, named="instance"):
    """Rows as the page says: the last value of each name, set of tags and time.

    `named` is the tag that the key `instance` of the samples is sent as.
    """
    rows = {}
    for name, labels, age, value in samples:
        if value - value == 0:  # finite
            entity = "entity_id" if labels.get("instance") else named  # an empty one names nobody
            tags = {entity if key == "instance" else key: text for key, text in labels.items()}
            key = (time_of(NOW_S - age), tuple(sorted(tags.items())))
            rows.setdefault(key, {})[name] = value
    return sorted((time, tags, sorted(fields.items())) for (time, tags), fields in rows.items())


def stored(served):
    found = [(time, tuple(sorted(t.items())), sorted(f.items())) for _, time, t, f in served.rows()]
    return sorted(found)


def in_order(labels):
    """Labels as remote write demands them."""
    return dict(sorted(labels.items()))


@given(samples=SAMPLES)
def test_remote_write_stores_what_a_plain_model_does(renewed, samples):
    served = renewed()
    series = [
        time_series({"__name__": name, **in_order(labels)}, [(value, (NOW_S - age) * 1000)])
        for name, labels, age, value in samples
    ]
    assert write(served, *series).status_code == 204
    assert stored(served) == model(samples)


TWO_ORDERS = [{"instance": "a", "job": "n"}, {"job": "n", "instance": "a"}]


@example(samples=[("load", labels, 0, value) for value in (1.0, 2.0) for labels in TWO_ORDERS])
@given(samples=SAMPLES)
def test_otlp_stores_what_a_plain_model_does_in_whatever_order_attributes_come(renewed, samples):
    served = renewed()
    metrics = [
        gauge(
            name,
            [
                (
                    {"service.name" if key == "instance" else key: t for key, t in labels.items()},
                    NOW_NS - age * 10**9,
                    value,
                )
            ],
        )
        for name, labels, age, value in samples
    ]
    assert served.post(OTLP, export({}, b"".join(metrics)), PROTOBUF).status_code == 200
    assert stored(served) == model(samples, "service.name")
