"""Heads are read as gunicorn's parser reads them, whoever it was written for."""

import socket

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import (
    ExpectationFailed,
    InvalidHeader,
    LimitRequestHeaders,
    LimitRequestLine,
    NoMoreData,
    ParseException,
    UnsupportedTransferCoding,
)
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

HEAD = (
    b"POST /telemetry?a=%20b&c=? HTTP/1.1\r\nHost: a:1\r\nX-Api-Key: k:1\r\n"
    b"Content-Length: 5\r\n\r\n"
)
CODES = (
    (LimitRequestLine, "uri_too_long"),
    (LimitRequestHeaders, "headers_too_large"),
    (ExpectationFailed, "expectation_failed"),
    (UnsupportedTransferCoding, "unsupported_transfer_coding"),
)
SETTINGS = {
    "limit_request_line": 8190,
    "limit_request_fields": 100,
    "limit_request_field_size": 8190,
    "permit_unconventional_http_method": True,
    "forwarded_allow_ips": "",
    "forwarder_headers": "",
    "secure_scheme_headers": {},
}
CONFIG = Config()
for name, value in SETTINGS.items():
    CONFIG.set(name, value)

METHODS = ("GET", "POST", "CONNECT", "get", "G@T", "")
TARGETS = (
    "/",
    "/a/b%2F?c=d%26&e",
    "//a",
    "/a#b?c",
    "/a?b#c",
    "*",
    "a",
    "http://h/a",
    "/\xff",
    "/ a",
    "/[",
    "/a;b?",
)
VERSIONS = ("HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "http/1.1", "")
NAMES = (
    *("Host", "host", "X-Api-Key", "x-api-key", "X_Api_Key", "Content-Type", "Content-Length"),
    *("Connection", "Transfer-Encoding", "Expect", "Script-Name", "A!", "A ", "", "\xdf"),
)
VALUES = (
    *("a", "A: b:c", " a", "a ", "", "a\tb", "a\x00", "\xff", "3", "-3", "03", "9" * 19, "3, 3"),
    *("keep-alive", "Keep-Alive", "close", "upgrade", "chunked", "100-continue", 'a"b\\', "a\rb"),
)


def meant_to_gunicorn(head):
    """Meaning of a head, or the code of its fault; `None` where it is not whole to gunicorn."""
    if head.count(b"\n") != head.count(b"\r\n"):
        return "bad_request"
    try:
        request = Request(CONFIG, IterUnreader(bytes([byte]) for byte in head), ("", 0))
    except NoMoreData:
        return None
    except ParseException as error:
        if isinstance(error, InvalidHeader) and error.hdr == "CONTENT-LENGTH":
            return "invalid_content_length"
        return next((code for kind, code in CODES if isinstance(error, kind)), "bad_request")
    fields = {}
    for name, value in request.headers:
        key = name.upper().replace("-", "_")
        variable = key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"
        fields[variable] = f"{fields[variable]},{value}" if variable in fields else value
    return {
        "REQUEST_METHOD": request.method,
        "RAW_PATH": request.path,
        "QUERY_STRING": request.query,
        "SERVER_PROTOCOL": "HTTP/{}.{}".format(*request.version),
        **fields,
    }


def meant(server, head):
    """Meaning of a head to the server, whose answer tells; the body never comes."""
    with server.client() as client:
        client.send(head)
        client.sock.shutdown(socket.SHUT_WR)
        while (answer := client.response()).status == 100:
            pass
    if answer.status != 200:
        return answer.json["error"]
    return {name: answer.json[name] for name in answer.json if name not in UNTOLD}


UNTOLD = {"PATH_INFO", "body", "bytes"}


def agrees(server, head):
    wanted = meant_to_gunicorn(head)
    return wanted is None or meant(server, head) == wanted


many = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def often(usual, *others):
    return st.sampled_from((usual, *others)) | st.just(usual)


FIELDS = st.lists(
    st.tuples(st.sampled_from(NAMES), often(": ", ":", " : ", ""), st.sampled_from(VALUES)).map(
        "".join
    ),
    max_size=6,
)


@many
@given(
    often("", "\r\n"),
    st.sampled_from(METHODS),
    often(" ", "  "),
    st.sampled_from(TARGETS),
    often("HTTP/1.1", *VERSIONS),
    FIELDS,
    often("\r\n", "\n"),
)
@example("", "GET", " ", "/", "HTTP/1.1", [], "\r\n")
@example("", "GET", " ", "/", "HTTP/1.1", ["A: b"] * 101, "\r\n")
@example("", "GET", " ", "/", "HTTP/1.1", [f"A{n}: b" for n in range(101)], "\r\n")
@example("", "POST", " ", "/", "HTTP/1.1", ["Content-Length: 3", "Content-Length: 3"], "\r\n")
@example("", "GET", " ", "/", "HTTP/1.1", ["A: b", " folded: c"], "\r\n")
def test_heads_mean_what_they_mean_to_gunicorn(
    server, before, method, space, target, version, fields, line_end
):
    lines = [f"{before}{method}{space}{target} {version}", *fields, "", ""]
    assert agrees(server, line_end.join(lines).encode("latin-1"))


@many
@given(st.integers(0, len(HEAD) - 1), st.integers(0, 255))
def test_one_byte_changed(server, place, byte):
    head = bytearray(HEAD)
    head[place] = byte
    # A line break more may end the head before, and then another one begins.
    if byte not in b"\r\n":
        assert agrees(server, bytes(head))


def test_what_clients_send(server):
    told = meant(server, HEAD)
    assert told == meant_to_gunicorn(HEAD)
    assert [told[name] for name in ("REQUEST_METHOD", "RAW_PATH", "QUERY_STRING")] == [
        "POST",
        "/telemetry",
        "a=%20b&c=?",
    ]
    assert told["HTTP_HOST"] == "a:1"
    assert told["HTTP_X_API_KEY"] == "k:1"
    assert told["CONTENT_LENGTH"] == "5"


@pytest.mark.parametrize("begun", [HEAD[:-1], HEAD[:-4], b""])
def test_anything_but_a_whole_head_has_no_answer(server, begun):
    with server.client() as client:
        client.send(begun)
        client.sock.shutdown(socket.SHUT_WR)
        assert client.rest() == b""
