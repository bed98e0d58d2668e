"""Heads are taken and refused as by gunicorn's parser, which gets the same bytes one by one."""

import json
import socket
from http import HTTPStatus

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import (
    ExpectationFailed,
    InvalidHeader,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
    UnsupportedTransferCoding,
)
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader
from hypothesis import example, given
from hypothesis import strategies as st

from fleetcast.surface.error_codes import ERROR_CODES

HEAD = (
    b"POST /telemetry?a=%20b&c=? HTTP/1.1\r\nHost: a:1\r\nX-Api-Key: k:1\r\n"
    b"Content-Length: 5\r\nConnection: close\r\n\r\n"
)
END = b"\r\n\r\n"
NO_PEER = ("", 0)
SETTINGS = {
    "limit_request_line": 8190,
    "limit_request_fields": 100,
    "limit_request_field_size": 8190,
    "permit_unconventional_http_method": True,  # any token gets as far as 405
    "forwarded_allow_ips": "",
    "forwarder_headers": "",
    "secure_scheme_headers": {},
    "http_parser": "python",
}

METHODS = ("GET", "POST", "CONNECT", "OPTIONS", "HEAD", "get", "G@T", "")
TARGETS = (
    *("/", "/a/b%2F?c=d%26&e", "//a?b", "/a#b?c", "/a?b#c", "/a;b?", "/\xff", "/ a", "/[", "*"),
    *("a", "a:1", "a?://", "http://h/a", "http://h?b", "1http://h", "http://[::1]:1/a"),
    *("http://[fe80::1%25a]/", "http://[v1.a]/", "http://[1.2.3.4]/", "http://[::1/", "[::1]:1"),
)
VERSIONS = ("HTTP/1.1", "HTTP/1.0", "HTTP/1.7", "HTTP/2.0", "HTTP/0.9", "http/1.1", "HTTP/1.10", "")
NAMES = (
    *("Host", "host", "X-Api-Key", "x-api-key", "X_Api_Key", "Content-Type", "Content-Length"),
    *("Connection", "Transfer-Encoding", "Expect", "Script-Name", "A!", "A ", "", "\xdf"),
)
VALUES = (
    *("a", "A: b:c", " a", "a ", "", "a\tb", "a\x00", "a\x7f", "\xff", 'a"b\\', "a\rb", "a\nb"),
    *("3", "-3", "03", "9" * 19, "3, 3", "\xb2", "keep-alive", "Keep-Alive", "close", "upgrade"),
    *(
        "chunked",
        "gzip",
        "identity",
        "gzip,\tchunked",
        "chunked,",
        "jpeg",
        "100-Continue",
        "200-ok",
    ),
)


@pytest.fixture(scope="module")
def settings():
    config = Config()
    for name, value in SETTINGS.items():
        config.set(name, value)
    return config


def expected(settings, head):
    """Variables of the request, or the code of the refusal."""
    try:
        request = Request(settings, IterUnreader([bytes([byte]) for byte in head]), NO_PEER)
    except ParseException as error:
        return _code(error)
    variables = {
        "REQUEST_METHOD": request.method,
        "RAW_PATH": request.path,
        "QUERY_STRING": request.query,
        "SERVER_PROTOCOL": "HTTP/{}.{}".format(*request.version),
    }
    for name, value in request.headers:
        key = name.replace("-", "_")
        key = key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"
        variables[key] = f"{variables[key]},{value}" if key in variables else value
    return {**variables, "closes": bool(request.should_close())}


def _code(error):
    if isinstance(error, InvalidHeader) and error.hdr == "CONTENT-LENGTH":
        return "invalid_content_length"
    codes = {
        LimitRequestLine: "uri_too_long",
        LimitRequestHeaders: "headers_too_large",
        ExpectationFailed: "expectation_failed",
        UnsupportedTransferCoding: "unsupported_transfer_coding",
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), "bad_request")


def answered(server, head):
    """Status, fields and content of the last answer to `head`, behind which nothing comes."""
    with server.client() as client:
        client.send(head).sock.shutdown(socket.SHUT_WR)
        answer, _, content = (
            client.rest().removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(END)
        )
    return int(answer.split()[1]), answer, content


def assert_agrees(server, settings, head):
    status, answer, content = answered(server, head)
    wanted = expected(settings, head)
    if isinstance(wanted, str):
        assert (status, content) == (
            ERROR_CODES[wanted].http,
            json.dumps({"error": wanted}).encode(),
        )
        return
    assert status == HTTPStatus.OK, content
    if wanted.pop("closes"):
        assert b"Connection: close" in answer
    if wanted["REQUEST_METHOD"] != "HEAD":
        seen = json.loads(content)
        assert {
            name: seen[name] for name in seen if name in wanted or name[:5] == "HTTP_"
        } == wanted


def often(usual, *others):
    return st.sampled_from((usual, *others)) | st.just(usual)


FIELDS = st.lists(
    st.tuples(st.sampled_from(NAMES), often(": ", ":", " : ", ""), st.sampled_from(VALUES)).map(
        "".join
    )
    | st.sampled_from((" folded: a", "\tfolded", "X-Api-Key: a", "Content-Length: 3")),
    max_size=6,
)


@st.composite
def heads(draw):
    before = draw(often("", "\r\n", "\n", "\r"))
    space = draw(often(" ", "  ", "\t"))
    line = (draw(st.sampled_from(METHODS)), draw(st.sampled_from(TARGETS)))
    line = space.join([*line, draw(often("HTTP/1.1", *VERSIONS))])
    return "\r\n".join([before + line, *draw(FIELDS), "", ""]).encode("latin-1")


@st.composite
def mutants(draw):
    head = bytearray(HEAD)
    for _ in range(draw(st.integers(1, 2))):
        start = draw(st.integers(0, len(HEAD) - len(END) - 1))
        head[start : start + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(head) + END


@given(st.lists(heads() | mutants(), min_size=10, max_size=30))
@example([b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 100 + b"A_B: c\r\n\r\n"])
@example([b"GET / HTTP/1.1\r\n" + b"A_B: c\r\n" * 101 + b"\r\n"])
@example(
    [b"GET /" + b"a" * 8176 + b" HTTP/1.1\r\n\r\n", b"GET /" + b"a" * 8177 + b" HTTP/1.1\r\n\r\n"]
)
@example([b"GET / HTTP/1.1\r\nA:" + b"b" * size + b"\r\n\r\n" for size in (8186, 8187)])
@example([b"POST / HTTP/1.1\r\nContent-Length: " + b"0" * size + END for size in (4300, 4301)])
def test_heads_mean_the_same_to_gunicorn(server, settings, drawn):
    for head in drawn:
        whole = head[: head.index(END) + len(END)]
        assert_agrees(server, settings, whole)
