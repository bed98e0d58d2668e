"""Plain heads are read as gunicorn's parser reads them, and only those that it takes."""

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import NoMoreData, ParseException
from hypothesis import example, given
from hypothesis import strategies as st

from fleetcast.http.server.arbiter import _SETTINGS
from fleetcast.http.server.framing import ParserSettings, gunicorn_head
from fleetcast.http.server.head import plain_head

HEAD = (
    b"POST /telemetry?a=%20b&c=? HTTP/1.1\r\nHost: a:1\r\nX-Api-Key: k:1\r\n"
    b"Content-Length: 5\r\n\r\n"
)

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


@pytest.fixture(scope="module")
def settings():
    config = Config()
    for name, value in _SETTINGS.items():
        config.set(name, value)
    return ParserSettings(config)


def agrees(plain, settings, head):
    try:
        told = gunicorn_head(settings, head)
    except (ParseException, NoMoreData):
        return plain is None
    return plain is None or plain == told


def often(usual, *others):
    return st.sampled_from((usual, *others)) | st.just(usual)


FIELDS = st.lists(
    st.tuples(st.sampled_from(NAMES), often(": ", ":", " : ", ""), st.sampled_from(VALUES)).map(
        "".join
    ),
    max_size=6,
)


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
def test_plain_heads_mean_the_same_to_gunicorn(
    settings, before, method, space, target, version, fields, line_end
):
    lines = [f"{before}{method}{space}{target} {version}", *fields, "", ""]
    head = bytearray(line_end.join(lines).encode("latin-1"))
    plain = plain_head(head, settings.limit_request_fields)
    assert agrees(plain, settings, head)


@given(st.integers(0, len(HEAD) - 1), st.integers(0, 255))
def test_one_byte_changed(settings, place, byte):
    head = bytearray(HEAD)
    head[place] = byte
    assert agrees(plain_head(head, settings.limit_request_fields), settings, head)


def test_what_clients_send_is_plain(settings):
    told = plain_head(bytearray(HEAD), settings.limit_request_fields)
    assert told is not None
    assert told == gunicorn_head(settings, bytearray(HEAD))
    assert (told.method, told.path, told.query) == ("POST", "/telemetry", "a=%20b&c=?")
    assert told.fields == {"HTTP_HOST": "a:1", "HTTP_X_API_KEY": "k:1", "CONTENT_LENGTH": "5"}


@pytest.mark.parametrize("whole", [HEAD[:-1], HEAD[:-4], HEAD + b"G", b"", b"\r\n\r\n"])
def test_anything_but_one_whole_head_is_not_plain(whole):
    assert plain_head(bytearray(whole), 100) is None
