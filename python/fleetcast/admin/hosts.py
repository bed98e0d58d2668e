"""Names under which the private listener answers.

A page of any site can have its own name point to 127.0.0.1 (DNS rebinding), and would then read
this listener in the browser of whoever opens it. Its requests have that name in `Host`, so requests
with a name that nobody here chose are refused. An IP address is no name that a site could point
anywhere.
"""

from __future__ import annotations

import ipaddress
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_LOOPBACK = "localhost"
_REFUSED = json.dumps(
    {"error": "unknown_host", "message": "admin.hosts does not name this host."}
).encode()


def behind_known_hosts(
    application: WSGIApplication, hosts: Callable[[], Iterable[str]]
) -> WSGIApplication:
    """The application for requests with a known `Host`; 421 for others. `hosts` names more."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_known(environ.get("HTTP_HOST", ""), hosts()):
            return application(environ, start_response)
        fields = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(_REFUSED))),
            ("Cache-Control", "no-store"),
        ]
        start_response("421 Misdirected Request", fields)
        return [_REFUSED]

    return answer


def is_known(field: str, hosts: Iterable[str]) -> bool:
    """Returns true if a `Host` field is an IP address, a loopback name, or one of `hosts`.

    It is also true if there is no such field, which every browser sends.
    """
    host = name_of(field)
    if host in {"", _LOOPBACK, *map(name_of, hosts)} or host.endswith(f".{_LOOPBACK}"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def name_of(field: str) -> str:
    """The host of `HOST`, `HOST:PORT` or `[HOST]:PORT`, in lower case."""
    bracketed, end, _ = field.strip().lower().removeprefix("[").partition("]")
    return bracketed if end else bracketed.partition(":")[0].removesuffix(".")
