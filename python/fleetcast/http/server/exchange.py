"""One WSGI exchange: from a complete request to the parts of a whole response.

Answers are gathered before they are sent; nothing here streams.
"""

from __future__ import annotations

import io
import sys
import time
from email.utils import formatdate
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from wsgiref.types import WSGIApplication, WSGIEnvironment

    from fleetcast.http.server.connection import Connection

    ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]

_BODILESS = frozenset({"204", "304"})
_SAME_FOR_ALL: Mapping[str, object] = {
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http",
    "wsgi.input_terminated": True,
    "wsgi.multithread": True,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
}


def environ(
    connection: Connection, server: tuple[str, int], claim: Callable[[str], bool]
) -> WSGIEnvironment:
    """The WSGI environment of a request whose head is whole.

    `wsgi.input` holds the body, and one `read` of its length returns that very object. Where the
    body is due, it has not been received: an application that wants it answers `100 Continue`, and
    is asked again, `admitted`, when all of it is there. A request that is `over_share` is to be
    refused, and so is one whose account, once it is known, does not get it by `claim`.
    Host, forwarding and script headers change nothing but their own `HTTP_` variables.
    """
    request = connection.request
    assert request is not None  # noqa: S101 - only whole requests are served
    head = request.head
    peer = connection.peer
    address, port = peer[:2] if isinstance(peer, tuple) else ("", 0)
    path = head.path
    return {
        **head.fields,
        **_SAME_FOR_ALL,
        "REQUEST_METHOD": head.method,
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1") if "%" in path else path,
        "RAW_PATH": path,
        "QUERY_STRING": head.query,
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": head.version,
        "REMOTE_ADDR": address,
        "REMOTE_PORT": str(port),
        "wsgi.input": io.BytesIO(connection.body),
        "wsgi.errors": sys.stderr,
        "fleetcast.oversized": request.oversized,
        "fleetcast.body_due": connection.body_due,
        "fleetcast.admitted": connection.admitted,
        "fleetcast.over_share": connection.over_share,
        "fleetcast.claim": claim,
    }


class Exchange:
    """Runs the application once and holds its answer."""

    def __init__(self, application: WSGIApplication, variables: WSGIEnvironment) -> None:
        self._status = ""
        self._fields: list[tuple[str, str]] = []
        self._chunks: list[bytes] = []
        self._bodiless = variables["REQUEST_METHOD"] == "HEAD"
        produced: Iterable[bytes] = application(variables, self._start_response)
        try:
            self._chunks.extend(produced)
        finally:
            close = getattr(produced, "close", None)
            if close is not None:
                close()

    @property
    def wants_body(self) -> bool:
        """The answer is not final: it depends on the body that is due."""
        return self._status.startswith("100 ")

    def parts(self, *, keep: bool) -> list[bytes]:
        """Head and body of the response. Raises `ValueError` for what no header can hold."""
        bodiless = self._bodiless or self._status[:3] in _BODILESS
        lines = [
            f"HTTP/1.1 {self._status}",
            f"Date: {_date(int(time.time()))}",
            "Connection: keep-alive" if keep else "Connection: close",
        ]
        for name, value in self._fields:
            if bodiless or name.lower() != "content-length":
                lines.append(f"{name}: {value}")
        if not bodiless:
            lines.append(f"Content-Length: {sum(map(len, self._chunks))}")
        text = "\r\n".join(lines)
        breaks = len(lines) - 1
        if text.count("\n") != breaks or text.count("\r") != breaks:
            message = "a response header holds a line break"
            raise ValueError(message)
        head = f"{text}\r\n\r\n".encode("latin-1")
        return [head] if bodiless else [head, *self._chunks]

    def _start_response(
        self,
        status: str,
        fields: list[tuple[str, str]],
        exc_info: ExcInfo | None = None,  # noqa: ARG002 - nothing is sent before the end
    ) -> Callable[[bytes], None]:
        self._status = status
        self._fields = fields
        return self._chunks.append


@lru_cache(1)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
