"""Hostile and slow clients: forms that must be refused, and connections that only hold.

The tests show that nobody is harmed; `benches/service/hostile.py` measures by how much others wait.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

from tests.conformance.api import RawClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .service import Service

_POST = b"POST /telemetry HTTP/1.1\r\nHost: a\r\n"
_GET = b"GET /health HTTP/1.1\r\nHost: a\r\n"
_SMUGGLED = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
_BAD_LENGTH = (400, "invalid_content_length")
_BAD = (400, "bad_request")
_NO_LENGTH = (411, "length_required")

FORMS: Mapping[str, tuple[bytes, tuple[int, str]]] = {
    # Two readings of where the request ends.
    "length, then chunked": (_POST + b"Content-Length: 2\r\n" + _CHUNKED, _BAD_LENGTH),
    "chunked, then length": (_POST + _CHUNKED + b"Content-Length: 2\r\n", _BAD_LENGTH),
    "two lengths": (_POST + b"Content-Length: 2\r\nContent-Length: 40\r\n", _BAD_LENGTH),
    "one length twice": (_POST + b"Content-Length: 2\r\nContent-Length: 2\r\n", _BAD_LENGTH),
    "a list of lengths": (_POST + b"Content-Length: 2, 2\r\n", _BAD_LENGTH),
    "length with a sign": (_POST + b"Content-Length: +2\r\n", _BAD_LENGTH),
    "length below zero": (_POST + b"Content-Length: -2\r\n", _BAD_LENGTH),
    "hexadecimal length": (_POST + b"Content-Length: 0x2\r\n", _BAD_LENGTH),
    "length with a space": (_POST + b"Content-Length: 2 2\r\n", _BAD_LENGTH),
    "length with an underscore": (_POST + b"Content-Length: 1_0\r\n", _BAD_LENGTH),
    "empty length": (_POST + b"Content-Length:\r\n", _BAD_LENGTH),
    "length of 5,000 digits": (_POST + b"Content-Length: " + b"9" * 5_000 + b"\r\n", _BAD_LENGTH),
    "chunked": (_POST + _CHUNKED, _NO_LENGTH),
    "chunked twice": (_POST + _CHUNKED + _CHUNKED, _BAD),
    "chunked is not last": (_POST + b"Transfer-Encoding: chunked, identity\r\n", _BAD),
    "chunked behind a tab": (_POST + b"Transfer-Encoding:\tchunked\r\nContent-Length: 2\r\n",
                             _BAD_LENGTH),
    "chunked with a letter more": (
        _POST + b"Transfer-Encoding: xchunked\r\n", (501, "unsupported_transfer_coding")),
    "a coding that is none": (
        _POST + b"Transfer-Encoding: identity;q=1\r\n", (501, "unsupported_transfer_coding")),
    # Two readings of where a field or a line ends.
    "space before the colon": (_POST + b"Content-Length : 2\r\n", _BAD),
    "tab before the colon": (_POST + b"Transfer-Encoding\t: chunked\r\n", _BAD),
    "folded field": (_POST + b"X: a\r\n Content-Length: 2\r\n", _BAD),
    "folded first field": (b"POST /telemetry HTTP/1.1\r\n Host: a\r\n", _BAD),
    "bare line feeds": (b"POST /telemetry HTTP/1.1\nHost: a\nContent-Length: 2\n\n", _BAD),
    "one bare line feed": (_POST + b"X: a\nContent-Length: 2\r\n", _BAD),
    "bare carriage return": (_POST + b"X: a\rContent-Length: 2\r\n", _BAD),
    "zero byte": (_POST + b"X: a\x00b\r\n", _BAD),
    "no colon": (_POST + b"Content-Length 2\r\n", _BAD),
    "no name": (_POST + b": 2\r\n", _BAD),
    "two hosts": (_POST + b"Host: b\r\n", _BAD),
    # Lines that are no request.
    "no version": (b"GET /health\r\n", _BAD),
    "another version": (b"GET /health HTTP/3.0\r\n", _BAD),
    "version in small letters": (b"GET /health http/1.1\r\n", _BAD),
    "two spaces": (b"GET  /health HTTP/1.1\r\n", _BAD),
    "a tab for a space": (b"GET\t/health HTTP/1.1\r\n", _BAD),
    "no method": (b"/health HTTP/1.1\r\n", _BAD),
    "a method that is no token": (b"G@T /health HTTP/1.1\r\n", _BAD),
    "no path": (b"GET health HTTP/1.1\r\n", _BAD),
    "a path in latin-1": (b"GET /\xff HTTP/1.1\r\n", _BAD),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n", _BAD),
    # Too much of anything.
    "long line": (b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\n", (414, "uri_too_long")),
    "line without an end": (b"GET /" + b"a" * 60_000, (414, "uri_too_long")),
    "long field": (_GET + b"X: " + b"a" * 9_000 + b"\r\n", (431, "headers_too_large")),
    "many fields": (_GET + b"X: a\r\n" * 101, (431, "headers_too_large")),
    "head without an end": (_GET + b"X: a\r\n" * 20_000, (431, "headers_too_large")),
    "large body": (_POST + b"Content-Length: 1048577\r\n", (413, "request_too_large")),
    "body of a petabyte": (
        _POST + b"Content-Length: 1125899906842624\r\n", (413, "request_too_large")),
    "an expectation": (_GET + b"Expect: 200-ok\r\n", (417, "expectation_failed")),
}  # fmt: skip
"""By name: a head without its last line end, and what it must be answered.

Behind each comes a whole request that must not be answered: who takes the head for something else
would do so.
"""


def refusal_of(service: Service, form: bytes, key: str | None = None) -> tuple[int, str]:
    """Status and code of the only answer to a form. Raises where it is not the contract's JSON."""
    field = b"" if key is None else b"x-api-key: " + key.encode() + b"\r\n"
    with client(service) as wire:
        # A server that closes at once may do so before it has taken everything.
        with contextlib.suppress(ConnectionError):
            wire.send(form + field + b"\r\n" + _SMUGGLED)
        answer = wire.response()
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["Cache-Control"] == "no-store"
        assert len(answer.headers["X-Request-Id"]) == 32
        assert wire.rest() == b"", "somebody answered the second request"
    (code,) = answer.json.values()
    return answer.status, code


def client(service: Service, **options: int) -> RawClient:
    return RawClient(int(service.address.rsplit(":", 1)[1]), **options)


class Held:
    """Connections that do what they can to hold the service; `trickle` sends a byte on each."""

    def __init__(self, service: Service, count: int, begun: bytes, **options: int) -> None:
        self._clients = []
        for _ in range(count):
            wire = client(service, **options)
            self._clients.append(wire)
            with contextlib.suppress(ConnectionError):
                wire.send(begun)
            wire.sock.settimeout(0)

    def trickle(self, byte: bytes = b"a") -> None:
        for wire in self._clients:
            with contextlib.suppress(OSError):
                wire.sock.send(byte)

    def sip(self) -> None:
        """Reads next to nothing of an answer."""
        for wire in self._clients:
            with contextlib.suppress(OSError):
                wire.sock.recv(64)

    def open_count(self) -> int:
        """The number that the service has not closed."""
        return sum(not _is_closed(wire.sock) for wire in self._clients)

    def close(self) -> None:
        for wire in self._clients:
            wire.sock.close()


def _is_closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def holding(service: Service, name: str, count: int) -> contextlib.AbstractContextManager[Held]:
    """The attack `name` of `ATTACKS`, under way."""
    return ATTACKS[name](service, count)


@contextlib.contextmanager
def _held(service: Service, count: int, begun: bytes, **options: int) -> Iterator[Held]:
    made = Held(service, count, begun, **options)
    try:
        yield made
    finally:
        made.close()


def _keyed(service: Service, head: bytes) -> bytes:
    return head + b"x-api-key: " + service.key.encode() + b"\r\n"


ATTACKS: Mapping[str, Callable[[Service, int], contextlib.AbstractContextManager[Held]]] = {
    "idle connections": lambda service, count: _held(service, count, b""),
    "half a head, then silence": lambda service, count: _held(service, count, _POST[:20]),
    "half a body, then silence": lambda service, count: _held(
        service, count, _keyed(service, _POST) + b"Content-Length: 100\r\n\r\n["
    ),
    "slow heads": lambda service, count: _held(service, count, _POST + b"X: "),
    "slow bodies": lambda service, count: _held(
        service, count, _keyed(service, _POST) + b"Content-Length: 1000000\r\n\r\n"
    ),
    "slow readers of large answers": lambda service, count: _held(
        service,
        count,
        _keyed(service, b"GET /topology?freshness_seconds=604800 HTTP/1.1\r\n") + b"\r\n",
        buffer_bytes=4_096,
    ),
}
"""By name: opens so many connections and begins on each what it never ends."""
