"""Malformed heads are answered in JSON before any application code runs (stage 0)."""

import pytest

GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: -1\r\n",
        b"Content-Length: +3\r\n",
        b"Content-Length: 3, 3\r\n",
        b"Content-Length: 0x3\r\n",
        b"Content-Length: 3.0\r\n",
        b"Content-Length: 3_0\r\n",
        b"Content-Length: abc\r\n",
        b"Content-Length: \xb2\r\n",
        b"Content-Length: " + b"9" * 5000 + b"\r\n",
        b"Content-Length:\r\n",
        b"content-length: 3\r\nContent-Length: 3\r\n",
        b"Content-Length: 3\r\nContent-Length: 4\r\n",
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
    ],
)
def test_bad_content_length(server, fields):
    with server.client() as client:
        answer = client.send(POST + fields + b"\r\nabc").response()
        assert answer.status == 400
        assert answer.json == {"error": "invalid_content_length"}
        assert client.rest() == b""


@pytest.mark.parametrize(
    ("request_bytes", "status", "code"),
    [
        (b"GET /\r\n\r\n", 400, "bad_request"),
        (b"\r\n\r\n", 400, "bad_request"),
        (b"GET / HTTP/3.0\r\n\r\n", 400, "bad_request"),
        (b"G@T / HTTP/1.1\r\n\r\n", 400, "bad_request"),
        (b"GET /\xff HTTP/1.1\r\n\r\n", 400, "bad_request"),
        (b"GET telemetry HTTP/1.1\r\n\r\n", 400, "bad_request"),
        (b"GET / HTTP/1.1\nHost: a\n\n", 400, "bad_request"),
        (GET + b"no colon\r\n\r\n", 400, "bad_request"),
        (GET + b"Name : value\r\n\r\n", 400, "bad_request"),
        (GET + b"A: b\r\n folded\r\n\r\n", 400, "bad_request"),
        (GET + b"A: b\x00\r\n\r\n", 400, "bad_request"),
        (GET + b"Host: b\r\n\r\n", 400, "bad_request"),
        (POST + b"Transfer-Encoding: gzip\r\n\r\n", 400, "bad_request"),
        (POST + b"Transfer-Encoding: jpeg\r\n\r\n", 501, "unsupported_transfer_coding"),
        (GET + b"Expect: 200-ok\r\n\r\n", 417, "expectation_failed"),
        (b"GET /" + b"a" * 8190 + b" HTTP/1.1\r\n\r\n", 414, "uri_too_long"),
        (b"GET /" + b"a" * 9000, 414, "uri_too_long"),
        (GET + b"A: " + b"b" * 8190 + b"\r\n\r\n", 431, "headers_too_large"),
        (GET + b"A: b\r\n" * 101 + b"\r\n", 431, "headers_too_large"),
        (GET + b"A: b\r\n" * 12_000, 431, "headers_too_large"),
    ],
)
def test_malformed_heads(server, request_bytes, status, code):
    with server.client() as client:
        answer = client.send(request_bytes).response()
        assert (answer.status, answer.json) == (status, {"error": code})
        assert client.rest() == b""


def test_refusals_carry_the_common_headers(server):
    answer = server.ask(b"?\r\n\r\n")
    assert len(answer.headers.pop("X-Request-Id")) == 32
    assert answer.headers == {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Content-Length": str(len(answer.body)),
        "Connection": "close",
    }


def test_a_request_line_of_8190_bytes_is_served(server):
    line = b"GET /?" + b"a" * (8190 - len(b"GET /? HTTP/1.1")) + b" HTTP/1.1"
    assert len(line) == 8190
    assert server.ask(line + b"\r\n\r\n").status == 200


def test_heads_may_come_byte_by_byte(server):
    with server.client() as client:
        for byte in GET + b"\r\n":
            client.send(bytes([byte]))
        assert client.response().status == 200


def test_any_method_token_reaches_the_app(server):
    assert server.ask(b"x / HTTP/1.1\r\n\r\n").json["REQUEST_METHOD"] == "x"


def test_scripts_and_forwarding_headers_change_nothing(server):
    answer = server.ask(
        b"GET /a%2Fb%FF HTTP/1.1\r\nScript_Name: /a\r\nX_Api_Key: k\r\nX-Api-Key: one\r\n"
        b"X-Api-Key: two\r\n\r\n"
    ).json
    assert answer["PATH_INFO"] == "/a/b\xff"
    assert answer["HTTP_X_API_KEY"] == "one,two"
    assert "HTTP_SCRIPT_NAME" not in answer
