"""A: HTTP framing and transport, bodies above all; `test_targets.py` has A11 to A19."""

from __future__ import annotations

import gzip
import json
import socket

import pytest

from tests.waiting import until_well

from .api import GETS, ask, at, faults, head, raw, record, refusal, untimed

BODY_MAX = 1_048_576
COMMON = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


def is_dressed(answer):
    return answer.headers["X-Request-Id"] and all(
        answer.headers[name] == value for name, value in COMMON.items()
    )


def test_a1_chunked_without_a_length_is_411_and_never_read(quiet):
    with raw(quiet.service) as client:
        chunks = b"2\r\n[]\r\n0\r\n\r\n"
        text = head("POST", "/telemetry", quiet.key, "Transfer-Encoding: chunked")
        answer = client.send(text + chunks).response()
        assert refusal(answer) == (411, {"error": "length_required"})
        assert client.rest() == b""


def test_a1_no_length_at_all_is_411(quiet):
    assert refusal(ask(quiet, "POST", "/telemetry")) == (411, {"error": "length_required"})


@pytest.mark.parametrize(
    "fields",
    [
        *(
            [f"Content-Length: {text}"]
            for text in ("-1", "+3", "3, 3", "0x3", "3.0", "", "3 3", "\N{SUPERSCRIPT THREE}")
        ),
        ["Content-Length: 2", "Content-Length: 3"],
        ["Content-Length: 2", "Content-Length: 2"],
        ["Content-Length: 2", "Transfer-Encoding: chunked"],
    ],
)
def test_a2_a3_a_malformed_length_is_400_in_json(quiet, fields):
    """Stage 0: even for a path that does not exist, and without a key."""
    for path, key in (("/telemetry", quiet.key), ("/nowhere", None)):
        with raw(quiet.service) as client:
            answer = client.send(head("POST", path, key, *fields) + b"[]").response()
            assert refusal(answer) == (400, {"error": "invalid_content_length"})
            assert client.rest() == b""


@pytest.mark.parametrize("sent", [b"", b"[]"])
def test_a4_a_body_that_ends_early_is_400_and_nothing_is_written(tenant, sent):
    with raw(tenant.service) as client:
        client.send(head("POST", "/telemetry", tenant.key, "Content-Length: 10") + sent)
        client.sock.shutdown(socket.SHUT_WR)
        answer = client.response()
        assert refusal(answer) == (400, {"error": "invalid_content_length"})
        assert client.rest() == b""
    assert tenant.entities() == []


def test_a5_one_mebibyte_is_accepted_and_a_byte_more_is_not(tenant):
    body = json.dumps([record(at(1))]).encode()
    assert tenant.post(body.ljust(BODY_MAX)).status == 202
    answer = tenant.post(body.ljust(BODY_MAX + 1))
    assert refusal(answer) == (413, {"error": "request_too_large"})


@pytest.mark.parametrize("digits", [16, 20, 4_000])
def test_a5_the_header_decides_before_a_byte_of_the_body(quiet, digits):
    """However long the number is: it is refused and logged like any other."""
    answer = ask(quiet, "POST", "/telemetry", f"Content-Length: {'9' * digits}")
    assert refusal(answer) == (413, {"error": "request_too_large"})


def test_a5_a_client_that_sends_on_can_read_its_answer(quiet):
    size = 6 * BODY_MAX
    with raw(quiet.service) as client:
        client.send(head("POST", "/telemetry", quiet.key, f"Content-Length: {size}"))
        client.send(b" " * size)
        assert refusal(client.response()) == (413, {"error": "request_too_large"})


@pytest.mark.parametrize(
    "content_type",
    [
        *("application/json", "Application/JSON", "application/json; charset=utf-8"),
        *("application/vnd.fleet+json", "application/cloudevents-batch+json;v=1"),
        None,
    ],
)
def test_a7_json_by_any_name_or_none(quiet, content_type):
    fields = [] if content_type is None else [f"Content-Type: {content_type}"]
    answer = ask(quiet, "POST", "/telemetry", "Content-Length: 2", *fields, body=b"[]")
    assert answer.status == 202


@pytest.mark.parametrize(
    "content_type", ["text/plain", "text/json", "application/x-www-form-urlencoded", "json"]
)
def test_a7_another_type_is_a_schema_fault_of_the_header(quiet, content_type):
    answer = ask(
        quiet,
        "POST",
        "/telemetry",
        f"Content-Type: {content_type}",
        "Content-Length: 2",
        body=b"[]",
    )
    assert [loc for _, loc in faults(answer)] == [["header", "content-type"]]


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, identity", "x"])
def test_a8_an_encoded_body_is_415(quiet, coding):
    body = gzip.compress(b"[]")
    length = f"Content-Length: {len(body)}"
    answer = ask(quiet, "POST", "/telemetry", length, f"Content-Encoding: {coding}", body=body)
    assert refusal(answer) == (415, {"error": "unsupported_content_encoding"})
    assert answer.headers["Accept-Encoding"] == "identity"


def test_a9_an_empty_body_is_missing(quiet):
    answer = ask(quiet, "POST", "/telemetry", "Content-Length: 0")
    assert faults(answer) == [("missing", ["body"])]


def test_a10_a_byte_order_mark_is_skipped(tenant):
    body = b"\xef\xbb\xbf" + json.dumps([record(at(1))]).encode()
    assert tenant.post(body).json["accepted_count"] == 1


@pytest.mark.parametrize(
    "body",
    [
        *(json.dumps([record(at(1))]).encode(name) for name in ("utf-16", "utf-16-le", "utf-32")),
        '[{"measurement":"\N{LATIN SMALL LETTER E WITH ACUTE}"}]'.encode("latin-1"),
        b'["\xed\xa0\x80"]',
        b'["\xc0\x80"]',
    ],
)
def test_a10_what_is_not_utf8_is_no_json(quiet, body):
    ((kind, loc),) = faults(quiet.post(body))
    assert kind == "json_invalid"
    assert loc[0] == "body"


def test_a20_the_body_of_a_get_is_drained(quiet):
    with raw(quiet.service) as client:
        client.send(head("GET", "/topology", quiet.key, "Content-Length: 100000"))
        assert client.response().status == 200
        client.send(b"x" * 100_000 + head("GET", "/health", None))
        assert client.response().json == {"status": "ok", "checks": {}}


def test_a20_a_chunked_body_of_a_get_is_never_taken_for_a_request(quiet):
    with raw(quiet.service) as client:
        smuggled = head("GET", "/account/state", quiet.key)
        chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(smuggled), smuggled)
        text = head("GET", "/health", None, "Transfer-Encoding: chunked")
        assert client.send(text + chunks).response().status == 200
        assert client.rest() == b""


def test_a21_a_client_may_wait_for_100_continue(quiet):
    fields = ("Expect: 100-continue", "Content-Length: 2")
    with raw(quiet.service) as client:
        client.send(head("POST", "/telemetry", quiet.key, *fields))
        assert client.response().status == 100
        assert client.send(b"[]").response().status == 202


@pytest.mark.parametrize(
    ("path", "key", "field", "expected"),
    [
        ("/telemetry", "ftk_bad", "X: y", (401, {"error": "auth_failed"})),
        ("/telemetry", None, "X: y", (401, {"error": "auth_failed"})),
        ("/telemetry", "reader", "X: y", (403, {"error": "insufficient_scope"})),
        ("/nowhere", "", "X: y", (404, {"error": "not_found"})),
        ("/topology", "", "X: y", (405, {"error": "method_not_allowed"})),
        (
            "/telemetry",
            "",
            "Content-Encoding: gzip",
            (415, {"error": "unsupported_content_encoding"}),
        ),
        ("/telemetry", "", "Content-Type: text/plain", (422, "content_type")),
    ],
)
@pytest.mark.parametrize("size", [10, 100_000, BODY_MAX])
def test_n9_what_the_head_decides_is_answered_without_the_body(
    quiet, accounts, path, key, field, expected, size
):
    if key == "reader":
        key = accounts.key("quiet", scopes=("topology:read",))
    elif key == "":
        key = quiet.key
    with raw(quiet.service) as client:
        client.send(head("POST", path, key, f"Content-Length: {size}", field))
        answer = client.response()
        code = faults(answer)[0][0] if answer.status == 422 else answer.json
        assert (answer.status, code) == expected
        # The body comes late, and is no request.
        client.send(b"x" * size + head("GET", "/health", None))
        assert client.response().json == {"status": "ok", "checks": {}}


def test_n9_the_body_of_a_write_that_is_welcome_may_come_at_any_time(tenant):
    body = json.dumps([record(at(1))]).encode().ljust(100_000)
    with raw(tenant.service) as client:
        client.send(head("POST", "/telemetry", tenant.key, f"Content-Length: {len(body)}"))
        for first in range(0, len(body), 30_000):
            client.send(body[first : first + 30_000])
            assert tenant.get("/topology").status == 200
        assert client.response().status == 202
    assert len(tenant.entities()) == 1


def test_a22_half_sent_requests_hold_nobody_up(quiet):
    """More of them than there are threads in all workers, in the head and in the body."""
    begun = []
    try:
        for number in range(64):
            client = raw(quiet.service)
            begun.append(client)
            whole = head("POST", "/telemetry", quiet.key, "Content-Length: 2") + b"["
            client.send(whole if number % 2 else whole[:20])
        for _ in range(8):
            assert quiet.get("/topology").status == 200
        # And nobody has forgotten those that wait.
        assert begun[1].send(b"]").response().status == 202
    finally:
        for client in begun:
            client.sock.close()


def test_a23_two_keys_are_no_key(quiet):
    fields = [f"x-api-key: {quiet.key}"]
    answer = ask(quiet, "GET", "/topology", *fields)
    assert refusal(answer) == (401, {"error": "auth_failed"})


def test_a24_host_says_nothing(quiet, accounts):
    other = accounts.tenant()
    for fields in ([], [f"Host: {other.name}.example"], ["Host: [::1]:1"]):
        text = "\r\n".join(["GET /topology HTTP/1.1", *fields, f"x-api-key: {quiet.key}", "", ""])
        with raw(quiet.service) as client:
            answer = client.send(text.encode()).response()
            assert answer.json["tenant_key"] == quiet.name


def test_a25_http2_is_not_spoken(quiet):
    with raw(quiet.service) as client:
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert client.rest().startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        *(("GET", path, 200) for path in GETS),
        ("GET", "/nowhere", 404),
        ("DELETE", "/topology", 405),
        ("GET", "/topology?freshness_seconds=0", 422),
        ("POST", "/telemetry", 411),
    ],
    ids=untimed,
)
def test_a26_every_answer_carries_the_common_headers(quiet, method, path, status):
    if status == 200:
        answer = until_well(lambda: ask(quiet, method, path))
    else:
        answer = ask(quiet, method, path)
    assert answer.status == status
    assert is_dressed(answer)


def test_a26_so_do_202_401_and_a_malformed_head(quiet):
    answers = [
        ask(quiet, "POST", "/telemetry", "Content-Length: 2", body=b"[]"),
        ask(quiet, "GET", "/topology", key=None),
        ask(quiet, "POST", "/telemetry", "Content-Length: x"),
    ]
    assert [answer.status for answer in answers] == [202, 401, 400]
    assert all(is_dressed(answer) for answer in answers)
    assert len({answer.headers["X-Request-Id"] for answer in answers}) == 3
