"""A write of another protocol, and a question in the language of Prometheus, is answered, stored
and counted the same by the front and by the application.
"""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import partial
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.adapters.messages import export, gauge, snappy, time_series

from .api import HOUR_S
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

TIME = HOUR_S + 60
LINE = b"link,entity_id=a snr_db=1.5 %d\n" % TIME
LINES = (
    *(LINE, LINE * 3, LINE * 60, b"", b"# none\n\n", b"\xff", LINE + b"link x=1 5\nlink x\n"),
    b'link,entity_id=b snr_db=2,note="\xc3\xa9" %d\nup,host=a x=1i %d' % (TIME, TIME),
    b"link,entity_id=a snr_db=t %d" % TIME,
)
PATHS = ("/write", "/api/v2/write", "/api/v3/write_lp")
QUERIES = (
    *["?precision=s"] * 6,
    *("", "?precision=", "?precision=%73", "?precision=x&precision=s", "?precision=%C2%B5&db=a"),
    *("?precision=s&accept_partial=false", "?precision=s&accept_partial=no", "?precision=second"),
)


def load(value, **labels):
    return time_series({"__name__": "load", "instance": "a", **labels}, [(value, TIME * 1000)])


def points(count, value=1.5):
    return export({"host.name": "a"}, gauge("load", [({}, TIME * 10**9, value)] * count))


SERIES = load(1.5)
STALE = load(float("nan"))
NAMELESS = time_series({"a": "b"}, [(1.0, TIME * 1000)])
REMOTE_WRITES = (SERIES, SERIES * 3, SERIES * 100, b"", b"\x0a\x05", STALE, STALE + SERIES)
METRICS = (points(1), points(3), points(200), points(0), points(1, float("nan")), b"", b"\x0a\x05")
RANGE = {"start": TIME - 60, "end": TIME + 60, "step": 15}
ANSWERED = (
    ("query", {"query": "load", "time": TIME}),
    ("query", {"query": "load[5m]", "time": TIME + 0.5, "timeout": "30s"}),
    ("query", {"query": "'é'", "time": f"{TIME}.25"}),
    ("query_range", {"query": 'sum by (instance) (rate(snr_db{note!="x"}[5m]))', **RANGE}),
    ("query_range", {"query": "load or vector(time())", **RANGE}),
    ("series", {"match[]": "load"}),
    ("labels", {"start": TIME}),
    ("label/instance/values", {"match[]": "up"}),
    ("metadata", {"limit": 1}),
    ("status/buildinfo", {"x": "é"}),
)
REFUSED = (
    ("query", {"query": "sum("}),
    ("query", {"query": "load", "time": "soon"}),
    ("query", {"time": TIME}),
    ("query", {"query": "max_over_time(vector(1)[100y:1ms])", "time": TIME}),
    ("query_range", {"query": "load", **RANGE, "timeout": "0"}),
    ("series", {"end": TIME}),
    ("label/a-b/values", {"limit": 1}),
)
PACKERS = {"gzip": partial(gzip.compress, mtime=0), "snappy": snappy}
PROTOBUF = ("Content-Type", "application/x-protobuf")
FORM = ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
GZIP, SNAPPY = (("Content-Encoding", coding) for coding in PACKERS)


def write(target, content, coding, *fields):
    fields = fields if coding is None else (("Content-Encoding", coding), *fields)
    body = PACKERS.get((coding or "").lower(), bytes)(content)
    return Ask(body, target=target, fields=fields)


def question(method, asked):
    """A form in the body of a POST, and a query string otherwise."""
    path, parameters = asked
    target, text = f"/api/v1/{path}", urlencode(parameters)
    if method == "POST":
        return Ask(text.encode(), target=target, fields=(FORM,))
    return Ask(method=method, target=f"{target}?{text}", length=None)


def packed(members):
    length, count = members
    return Ask(PACKERS["gzip"](b"#" * length) * count, target="/write", fields=(GZIP,))


def in_chunks(ask):
    pieces = [ask.body[start : start + 40] for start in range(0, len(ask.body), 40)]
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    fields = (*ask.fields, ("Transfer-Encoding", "chunked"))
    return replace(ask, body=body, fields=fields, length=None)


codings = st.sampled_from([None, "identity", "gzip", "gzip", "GZip"])
targets = st.builds(str.__add__, st.sampled_from(PATHS), st.sampled_from(QUERIES))
writes = st.one_of(
    st.builds(write, targets, st.sampled_from(LINES), codings),
    st.builds(
        write,
        st.just("/api/v1/write"),
        st.sampled_from([*REMOTE_WRITES, NAMELESS + SERIES]),
        st.just("snappy"),
        st.just(PROTOBUF),
    ),
    st.builds(write, st.just("/v1/metrics"), st.sampled_from(METRICS), codings, st.just(PROTOBUF)),
)
questions = [st.sampled_from([*ANSWERED, *ANSWERED, *REFUSED])]
by_post = writes | st.builds(question, st.just("POST"), *questions)
asked = by_post | st.builds(question, st.sampled_from(["GET", "GET", "HEAD"]), *questions)
clients = st.sampled_from([EXEMPT] * 6 + [1, 2])
keys = st.sampled_from(["writer"] * 6 + ["second", "reader", "elsewhere", "unknown", None])
extra = st.sampled_from(
    [
        ("Origin", ORIGIN),
        ("Connection", "close"),
        ("Authorization", "Token another"),
        ("Content-Encoding", "zstd"),
        ("Content-Type", "application/json"),
        ("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request"),
    ]
)
odd = st.one_of(
    st.builds(replace, asked, client=clients, key=keys),
    st.builds(lambda ask, cut: replace(ask, body=ask.body[:-cut]), by_post, st.integers(1, 9)),
    st.builds(lambda ask, field: replace(ask, fields=(*ask.fields, field)), asked, extra),
    st.builds(lambda ask, field: replace(ask, fields=(field,)), asked, extra),
    st.builds(replace, asked, version=st.just("HTTP/1.0")),
    # One of too many members, and one that is too long when it is unpacked.
    st.sampled_from([(0, 1_025), (20_000_000, 1)]).map(packed),
    st.sampled_from(
        [
            Ask(b"\xff\xff\xff\xff\x0f\x00", target="/api/v1/write", fields=(SNAPPY, PROTOBUF)),
            Ask(method="GET", target="/ping", length=None),
            Ask(method="HEAD", target="/health", length=None),
            Ask(target="/api/v1/labels", fields=(FORM,)),
            Ask(method="GET", target="/api/v1/labels", length=None),
            Ask(b"match[]=load", target="/api/v1/labels?match[]=up", fields=(FORM,)),
            Ask(LINE, method="PUT", target="/write"),
            Ask(LINE, target="/write/"),
        ]
    ),
)
# A connection ends with a body in chunks if a part of the next request has come with it.
asks = st.builds(
    lambda first, last: (*first, *last),
    st.lists(asked | odd, min_size=1, max_size=9),
    st.lists(by_post.map(in_chunks), max_size=1),
)
cuts = st.lists(st.integers(0, 4_000), max_size=6).map(tuple)
sends = st.builds(Send, asks, st.just(()) | cuts)
changes = st.sampled_from(CHANGES)
SOUND = (
    *(write(f"{path}?precision=s", LINE, coding) for path in PATHS for coding in (None, "gzip")),
    write("/api/v1/write", SERIES, "snappy", PROTOBUF),
    write("/api/v1/write", STALE + SERIES, "snappy", PROTOBUF),
    *(write("/v1/metrics", points(2), coding, PROTOBUF) for coding in (None, "gzip")),
    *(question("POST", each) for each in ANSWERED),
)
BY_GET = tuple(question(method, each) for each in ANSWERED for method in ("GET", "HEAD"))
ALL = [Send((*SOUND, *BY_GET)), *(Send((in_chunks(ask),)) for ask in SOUND)]


@pytest.fixture(scope="module")
def both(disk):
    """Runs a program both ways; gives what came of it each way."""
    folder, _ = disk
    with both_ways(folder / "adapters", "adapters") as both:
        yield both


def test_only_one_way_leads_to_the_application(both):
    """Else the programs below would compare one way with itself."""
    by_front, by_application = both(ALL)
    assert by_front.answered_by_front == len(by_front.log) == 2 * len(SOUND) + len(BY_GET)
    assert by_application.answered_by_front == 0


def test_a_question_that_is_refused_is_not_evaluated_a_second_time_by_the_application(both):
    methods = ("GET", "HEAD", "POST")
    asked = tuple(question(method, each) for each in REFUSED for method in methods)
    by_front, by_application = both([Send((*SOUND, *asked))])
    assert not differences(by_front, by_application)
    statuses = [answer[0] for answer in by_front.answers[0][len(SOUND) :]]
    assert sorted({*statuses}) == [400, 422, 503]
    assert by_front.answered_by_front == len(SOUND) + len(asked)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # it would hide the difference
@settings(
    max_examples=min(settings().max_examples, 1_500),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(sends | sends | st.builds(Await, by_post) | changes, min_size=2, max_size=8))
@example([step for name in SETTINGS for step in (*ALL, Change("set", name), *ALL)])
@example([*ALL, Change("revoke", "writer"), *ALL, Change("renew", "writer"), *ALL])
@example([*ALL, Change("move_away"), *ALL, Change("move_back"), *ALL])
def test_both_ways_answer_and_account_alike(both, program):
    by_front, by_application = both(program)
    found = differences(by_front, by_application)
    assert not found, "\n".join(found)
    assert by_application.answered_by_front == 0
