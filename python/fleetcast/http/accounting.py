"""What is kept of every request: counters, usage, and one line of the access log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleetcast.accounts.key_text import read_key_text
from fleetcast.errors import Refused
from fleetcast.http.server.framing import HEAD_END
from fleetcast.logs import Served, audit
from fleetcast.metrics import Counters, Requests, Writes
from fleetcast.metrics.surfaces import OTHER

if TYPE_CHECKING:
    from collections.abc import Callable

    import falcon

    from fleetcast.accounts import Identity
    from fleetcast.http.call import Call
    from fleetcast.http.client_limiter import ClientLimiter
    from fleetcast.http.server.framing import Malformed
    from fleetcast.http.services import HttpServices

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_PROCESS = "http"


class Accounting:
    """Begins and ends with every request that reaches the application."""

    def __init__(self, services: HttpServices) -> None:
        self._log = services.access_log
        self._requests = Requests(services.counters, "http")

    def begin(self) -> float:
        """Gives the instant for `end`."""
        self._requests.began()
        return time.perf_counter()

    def interrupt(self) -> None:
        """The request is not whole yet, so it begins anew when it is."""
        self._requests.interrupted()

    def end(
        self,
        began: float,
        request_id: str,
        call: Call | None,
        request: falcon.Request,
        response: falcon.Response,
    ) -> None:
        """The answer is complete, but for what only the connection knows."""
        seconds = time.perf_counter() - began
        identity: Identity | None = getattr(call, "identity", None)
        path = getattr(call, "path", OTHER)
        method = request.method if request.method in _METHODS else OTHER
        status = response.status_code
        code = getattr(call, "code", None)
        account_id = None if identity is None else identity.account_id
        self._requests.ended(method, path, status, seconds, code=code, account_id=account_id)
        length = request.env.get("CONTENT_LENGTH") or "0"
        served = Served(
            request_id,
            method,
            path,
            status,
            code,
            None if identity is None else identity.tenant_key,
            None if identity is None else identity.key_id,
            getattr(call, "address", request.remote_addr),
            seconds,
            bytes_in=int(length) if length.isascii() and length.isdigit() else 0,
            bytes_out=0 if method == "HEAD" else _body_bytes(response),
            process=_PROCESS,
        )
        self._log(served)


class Refusals:
    """Requests that the parser refused: what they ask for is unknown, and nobody waited."""

    def __init__(self, counters: Counters, access_log: Callable[[Served], None]) -> None:
        self._requests = Requests(counters, "http")
        self._log = access_log

    def note(self, peer: object, malformed: Malformed) -> None:
        """Counts and logs one; `peer` is the address of its socket."""
        self._requests.refused(OTHER, OTHER, malformed.status, malformed.code)
        served = Served(
            malformed.request_id,
            OTHER,
            OTHER,
            malformed.status,
            malformed.code,
            None,
            None,
            str(peer[0]) if isinstance(peer, tuple) else "",
            0.0,
            bytes_in=0,
            bytes_out=len(malformed.answer.partition(HEAD_END)[2]),
            process=_PROCESS,
        )
        self._log(served)


def _body_bytes(response: falcon.Response) -> int:
    """Length of the body: one piece of bytes, or a list of them."""
    pieces = response.stream if isinstance(response.stream, list) else [response.data or b""]
    return sum(map(len, pieces))


def written_records(services: HttpServices) -> Writes:
    """Where the records that come in over HTTP are counted."""
    return Writes(services.counters, "http")


def audit_failure(call: Call, limiter: ClientLimiter) -> None:
    """Notes a key that was sent and is no good, by its id alone, and a lockout that it began."""
    text = read_key_text(call.request.get_header("X-Api-Key") or "")
    about = {
        "request_id": call.request_id,
        "client": call.address,
        "key_id": None if text is None else text.key_id,
        "transport": "http",
    }
    audit("authentication failed", **about)
    try:
        limiter.check_lockout(call.address)
    except Refused:
        audit("client locked out", **about)
