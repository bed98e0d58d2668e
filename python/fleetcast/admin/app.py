"""The WSGI application of the private listener: its paths need no keys, and take GET and HEAD."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fleetcast.admin.openapi import document
from fleetcast.admin.processes import ProcessValues
from fleetcast.admin.reference_page import STYLE_PATH, page, style
from fleetcast.metrics import exposition
from fleetcast.metrics.negotiation import accepted_type
from fleetcast.surface import answers
from fleetcast.surface.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIEnvironment

    from fleetcast.admin.readiness import Readiness
    from fleetcast.admin.tenant_gauges import TenantGauges
    from fleetcast.config.sections import Limits
    from fleetcast.metrics import Totals

_METHODS = ("GET", "HEAD")

logger = logging.getLogger(__name__)


class AdminApp:
    """Answers all paths of the listener except the console's paths."""

    def __init__(
        self,
        *,
        totals: Totals,
        readiness: Readiness,
        gauges: TenantGauges,
        limits: Callable[[], Limits],
    ) -> None:
        self._totals = totals
        self._gauges = gauges
        self._readiness = readiness
        self._limits = limits
        self._processes = ProcessValues()
        self._paths: Mapping[str, Callable[[str], Answer]] = {
            "/livez": lambda _accept: answers.document({"status": "ok"}),
            "/readyz": lambda _accept: self._ready(),
            "/metrics": self._metrics,
            "/openapi.json": lambda _accept: self._described(),
            "/docs": lambda _accept: self._reference(),
            STYLE_PATH: lambda _accept: Answer(200, (style(),), "text/css; charset=utf-8"),
        }

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers one request."""
        accept = environ.get("HTTP_ACCEPT", "")
        answer = self._answer(environ["PATH_INFO"], environ["REQUEST_METHOD"], accept)
        return answer.sent(start_response)

    def _answer(self, path: str, method: str, accept: str) -> Answer:
        handler = self._paths.get(path)
        if handler is None:
            return answers.document({"error": "not_found"}, 404)
        if method not in _METHODS:
            allow = ("Allow", ", ".join(_METHODS))
            return answers.document({"error": "method_not_allowed"}, 405, allow)
        try:
            return handler(accept)
        except Exception:
            logger.exception("%s failed", path)
            return answers.document({"error": "internal_error"}, 500)

    def _ready(self) -> Answer:
        """200 while every surface serves, the stores answer and upkeep goes on."""
        ready, content = self._readiness.look()
        return answers.document(content, 200 if ready else 503)

    def _described(self) -> Answer:
        """The description of the public API, with the limits in force."""
        return answers.document(document(self._limits()))

    def _reference(self) -> Answer:
        """The same description for readers."""
        text = page(document(self._limits())).encode()
        return Answer(200, (text,), "text/html; charset=utf-8")

    def _metrics(self, accept: str) -> Answer:
        """All counters, and the values that come from the stores and the system."""
        values: dict[str, float] = {**self._totals.all(), **self._processes.read()}
        kind = accepted_type(accept)
        return Answer(200, (exposition(values, self._gauges.lines(), kind=kind).encode(),), kind)
