"""Names that the private listener answers to.

A page of any site can let its own name point to 127.0.0.1 (DNS rebinding). The page could then read
this listener in the browser of a person who opens the page. Such requests have the site's name in
`Host`, so requests with a name that the operator did not choose are refused. IP addresses are
allowed, because a site cannot point an IP address to another machine.

Example: `Host: evil.example:9090` gets 421, `Host: 127.0.0.1:9090` is answered.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from fleetcast.surface.answers import document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_LOOPBACK = "localhost"
_REFUSED = document(
    {"error": "unknown_host", "message": "admin.hosts does not name this host."}, 421
)


def behind_known_hosts(
    application: WSGIApplication, hosts: Callable[[], Iterable[str]]
) -> WSGIApplication:
    """Wraps an application: requests with an unknown `Host` get 421. `hosts` adds known names."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_known(environ.get("HTTP_HOST", ""), hosts()):
            return application(environ, start_response)
        return _REFUSED.sent(start_response)

    return answer


def is_known(field: str, hosts: Iterable[str]) -> bool:
    """Returns true if a `Host` field is an IP address, a loopback name, or a name in `hosts`.

    Also returns true if there is no such field, because every browser sends it.
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
    """Returns the host of `HOST`, `HOST:PORT` or `[HOST]:PORT`, in lower case."""
    bracketed, end, _ = field.strip().lower().removeprefix("[").partition("]")
    return bracketed if end else bracketed.partition(":")[0].removesuffix(".")
