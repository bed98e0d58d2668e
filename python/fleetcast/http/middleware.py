"""The Falcon middleware: admits a request before its handler runs, and completes each answer."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from fleetcast.engine import LongAnswer
from fleetcast.http.request_state import RequestState
from fleetcast.log_lines import Served
from fleetcast.metrics.surfaces import OTHER
from fleetcast.surface.accounting import Accounting

if TYPE_CHECKING:
    import falcon

    from fleetcast.engine import Identity
    from fleetcast.http.admission import Admission
    from fleetcast.http.services import HttpServices

_CONTINUE = 100
_LENGTH = re.compile("[0-9]{1,18}")  # a longer number is refused, and no bytes of the body come
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Middleware:
    """Admits requests and accounts for them.

    `process` names the process in the access log.
    """

    def __init__(self, services: HttpServices, admission: Admission, process: str) -> None:
        self._accounting = Accounting("http", services.counters)
        self._admit = admission.admit
        self._process = process
        self._service = services.service

    def begin(self, request: falcon.Request, response: falcon.Response) -> RequestState:
        """Begins the state of a request."""
        state = RequestState(request, response, self._accounting.begin())
        request.context.state = state
        return state

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises the errors of `Admission.admit`."""
        self._admit(self.begin(request, response))

    def process_response(
        self,
        request: falcon.Request,
        response: falcon.Response,
        _resource: object,
        _succeeded: bool,  # noqa: FBT001 - Falcon's signature
    ) -> None:
        """Adds the headers that all answers have, and accounts for the request."""
        state: RequestState = request.context.state
        # The request and its state refer to each other. If this link stayed, their bodies would
        # wait for the garbage collector.
        request.context.state = None
        origin = request.get_header("Origin")
        allow = response.get_header("Allow") if request.method == "OPTIONS" else None
        for name, value in self._service.common_fields(state.request_id, origin, allow):
            response.set_header(name, value)
        status = response.status_code
        if status == _CONTINUE:
            self._accounting.interrupt()
        else:
            self._end(state, status)

    def _end(self, state: RequestState, status: int) -> None:
        began = state.began
        seconds = time.perf_counter() - began
        request, response = state.request, state.response
        identity: Identity | None = getattr(state, "identity", None)
        method = request.method
        length = request.env.get("CONTENT_LENGTH") or "0"
        served = Served(
            state.request_id,
            method if method in _METHODS else OTHER,
            state.path,
            status,
            state.code,
            None if identity is None else identity.tenant.name,
            None if identity is None else identity.key.key_id,
            getattr(state, "address", None) or request.remote_addr,
            seconds,
            bytes_in=int(length) if _LENGTH.fullmatch(length) else 0,
            bytes_out=0 if method == "HEAD" else _body_bytes(response),
            process=self._process,
        )
        account_id = None if identity is None else identity.tenant.account_id
        if isinstance(response.stream, LongAnswer) and method != "HEAD":
            response.stream.when_over(lambda made: self._end_long(served, began, account_id, made))
            return
        self._accounting.end(served, account_id)

    def _end_long(
        self, served: Served, began: float, account_id: str | None, bytes_out: int
    ) -> None:
        seconds = time.perf_counter() - began
        self._accounting.end(served._replace(seconds=seconds, bytes_out=bytes_out), account_id)


def _body_bytes(response: falcon.Response) -> int:
    """Length of the body, which is one piece of bytes or a list of pieces."""
    stream = response.stream
    return sum(map(len, stream)) if isinstance(stream, list) else len(response.data or b"")
