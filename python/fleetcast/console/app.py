"""The WSGI application of the console, below `/console`; `/` leads to it."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.console.answers import ConsoleRefused
from fleetcast.console.pages import Pages
from fleetcast.console.query import ConsoleQuery
from fleetcast.console.views.backtests import backtests
from fleetcast.console.views.channels import channels
from fleetcast.console.views.entities import entities, points
from fleetcast.console.views.forecasts import forecasts
from fleetcast.console.views.outlook import outlook
from fleetcast.console.views.overview import overview
from fleetcast.console.views.processes import processes
from fleetcast.console.views.questions import API, question
from fleetcast.console.views.refusals import refusals
from fleetcast.console.views.storage import storage, upcoming
from fleetcast.console.views.tenants import tenants
from fleetcast.console.views.tracks import tracks
from fleetcast.errors import Refused
from fleetcast.surface.answers import Answer, document
from fleetcast.surface.error_codes import ERROR_CODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIEnvironment

    from fleetcast.accounts import OpenSession
    from fleetcast.console.services import ConsoleServices

MOUNTED_AT = "/console"
_API = f"{MOUNTED_AT}/api/"
_STATIC = f"{MOUNTED_AT}/static/"
_SESSION = "session"
_TENANTS = "tenants/"
_READ = ("GET", "HEAD")
_OWN_SITES = ("", "same-origin", "none")  # of Sec-Fetch-Site, which old browsers do not send

logger = logging.getLogger(__name__)


class ConsoleApp:
    """Serves the page to everyone, and its data to operators who have signed in."""

    def __init__(self, services: ConsoleServices) -> None:
        self._sessions = services.sessions
        self._pages = Pages()
        self._views: Mapping[str, Callable[[ConsoleQuery], Answer]] = {
            "overview": lambda _query: overview(services),
            "tenants": lambda query: tenants(services, query),
            "storage": lambda query: storage(services, query),
            "processes": lambda _query: processes(services),
            "refusals": lambda _query: refusals(services),
        }
        self._tenant_views: Mapping[str, Callable[[str, ConsoleQuery], Answer]] = {
            "entities": partial(entities, services),
            "points": partial(points, services),
            "tracks": partial(tracks, services),
            "channels": partial(channels, services),
            "forecasts": partial(forecasts, services),
            "backtests": partial(backtests, services),
            "outlook": partial(outlook, services),
            "upcoming": lambda name, _query: upcoming(services, name),
        }
        self._question = partial(question, services)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers one request."""
        try:
            answer = self._answer(environ)
        except ConsoleRefused as refusal:
            answer = refusal.answer
        except Refused as refusal:
            answer = _refused(refusal)
        except ControlStoreUnavailable:
            logger.exception("the console cannot read accounts")
            message = "Accounts cannot be read now; the log says why."
            answer = document({"error": "auth_unavailable", "message": message}, 503)
        except Exception:
            logger.exception("the console failed")
            message = "This is a fault of the service; the log says more."
            answer = document({"error": "internal_error", "message": message}, 500)
        return answer.sent(start_response)

    def _answer(self, environ: WSGIEnvironment) -> Answer:
        path = environ["PATH_INFO"]
        if path.startswith(_API):
            return self._api(environ, path.removeprefix(_API))
        if environ["REQUEST_METHOD"] not in _READ:
            raise _not_allowed(*_READ)
        known = environ.get("HTTP_IF_NONE_MATCH", "")
        if path == "/":  # a permanent answer would outlive the service in the browser
            return Answer(302, fields=(("Location", f"{MOUNTED_AT}/"),))
        if path == MOUNTED_AT:
            return Answer(308, fields=(("Location", f"{MOUNTED_AT}/"),))
        if path == f"{MOUNTED_AT}/":
            return self._pages.page(known)
        if path.startswith(_STATIC):
            return self._pages.file(path.removeprefix(_STATIC), known)
        raise _not_found()

    def _api(self, environ: WSGIEnvironment, name: str) -> Answer:
        if environ.get("HTTP_SEC_FETCH_SITE", "") not in _OWN_SITES:
            message = "Only the console's own page may ask this."
            raise ConsoleRefused(403, "cross_site", message)
        if name == _SESSION:
            return self._session(environ)
        if environ["REQUEST_METHOD"] not in _READ:
            raise _not_allowed(*_READ)
        self._signed_in(environ)
        query_string = environ.get("QUERY_STRING", "")
        query = ConsoleQuery(query_string)
        if name in self._views:
            return self._views[name](query)
        tenant, _, view = name.removeprefix(_TENANTS).partition("/")
        if name.startswith(_TENANTS) and view in self._tenant_views:
            return self._tenant_views[view](tenant, query)
        if name.startswith(_TENANTS) and view.startswith(API):
            return self._question(tenant, view, query_string)
        raise _not_found()

    def _session(self, environ: WSGIEnvironment) -> Answer:
        if environ["REQUEST_METHOD"] in _READ:
            return document(_described(self._signed_in(environ)))
        if environ["REQUEST_METHOD"] == "POST":
            authorization = environ.get("HTTP_AUTHORIZATION", "")
            session, cookie = self._sessions.open(authorization, environ.get("REMOTE_ADDR", ""))
            self._sessions.end(_cookies(environ))  # this browser's session before
            return document(_described(session), 200, ("Set-Cookie", cookie))
        if environ["REQUEST_METHOD"] == "DELETE":
            return document({}, 200, ("Set-Cookie", self._sessions.end(_cookies(environ))))
        raise _not_allowed(*_READ, "POST", "DELETE")

    def _signed_in(self, environ: WSGIEnvironment) -> OpenSession:
        session = self._sessions.find(_cookies(environ))
        if session is None:
            message = "Sign in with a token of `fleetcast operator token`."
            raise ConsoleRefused(401, "signed_out", message)
        return session


def _cookies(environ: WSGIEnvironment) -> str:
    return str(environ.get("HTTP_COOKIE", ""))


def _described(session: OpenSession) -> dict[str, object]:
    record, token = session
    return {"token_id": token.token_id, "name": token.name, "expires_at": record.expires_at}


def _refused(refusal: Refused) -> Answer:
    code, context = refusal.args
    status = ERROR_CODES[code].http
    return document({"error": code, "message": f"The read is refused: {code}.", **context}, status)


def _not_found() -> ConsoleRefused:
    return ConsoleRefused(404, "not_found", "There is no such page.")


def _not_allowed(*methods: str) -> ConsoleRefused:
    message = f"This path takes {', '.join(methods)}."
    return ConsoleRefused(405, "method_not_allowed", message, ("Allow", ", ".join(methods)))
