"""Decisions about requests. The engine makes them in the front, or here if no front has decided."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.errors import RecordsUnavailable
from fleetcast.logs import audit_refusal
from fleetcast.metrics import label

if TYPE_CHECKING:
    from collections.abc import Mapping
    from wsgiref.types import WSGIEnvironment

    from fleetcast.engine import Decision, Piece
    from fleetcast.http.request_state import RequestState
    from fleetcast.http.routes import Route
    from fleetcast.http.services import HttpServices

    Body = bytes | Piece

logger = logging.getLogger(__name__)


class Admission:
    """Serves, ends or refuses a request, as the engine decided.

    `routes` are the paths of the listener.
    """

    def __init__(self, services: HttpServices, routes: Mapping[str, Route]) -> None:
        self._service = services.service
        self._routes = routes
        self._counters = services.counters
        self._over_share = services.counters.counter(
            label("fleetcast_refused_over_share_total", surface="http")
        )

    def admit(self, state: RequestState) -> None:
        """Records the decision on the state, and completes an answer that needs no handler.

        Raises `Refused`, `ControlStoreUnavailable`, `StoreError`.
        """
        environ, response = state.request.env, state.response
        body: Body = environ["fleetcast.body"] if "fleetcast.body" in environ else _body(environ)
        decision: Decision = environ.get("fleetcast.decision") or self._service.decide(
            environ, body_bytes=len(body)
        )
        self._take(state, decision)
        try:
            step = decision.check()
        except RecordsUnavailable as error:
            raise ControlStoreUnavailable(str(error)) from error
        failure = environ.get("fleetcast.failed")
        if failure is not None:  # the batch may be stored, so it must not be written again
            raise failure
        if step == "options":
            response.status = 204
            response.set_header("Allow", state.route.allow)
            response.complete = True
        elif step == "await body":
            response.status = 100
            response.complete = True
        elif state.route.codings:
            state.body = body

    def _take(self, state: RequestState, decision: Decision) -> None:
        """Copies the decision to the state, and logs its events."""
        state.address = decision.address
        if decision.path is not None:
            state.path, state.route = decision.path, self._routes[decision.path]
        identity = decision.identity
        if identity is not None:
            state.identity = identity
        plane = decision.plane
        if plane is not None:
            state.plane = plane
        if decision.is_over_share:
            self._counters.add(self._over_share)
        if decision.fault is not None:  # the client does not learn of this fault
            logger.error(
                "store cannot be opened: %s", decision.fault, extra={"request_id": state.request_id}
            )
        for event in decision.events:
            audit_refusal(
                event,
                request_id=state.request_id,
                client=state.address,
                key_id=decision.key_id,
                transport="http",
            )


def _body(environ: WSGIEnvironment) -> bytes:
    """Reads the body of a request that came through no front."""
    text = environ.get("CONTENT_LENGTH") or ""
    if environ["REQUEST_METHOD"] != "POST" or not (text.isascii() and text.isdigit()):
        return b""
    body: bytes = environ["wsgi.input"].read(int(text))
    return body
