"""The pipeline of the adapter listener: that of `http` but for keys and bodies."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from falcon import parse_header

from fleetcast.adapters.routes import ROUTES, AdapterRoute
from fleetcast.adapters.unpacking import unpacked
from fleetcast.errors import refused
from fleetcast.http.body import read_body
from fleetcast.http.pipeline import DECIDING_FIELDS as PUBLIC_DECIDING_FIELDS
from fleetcast.http.pipeline import KEY_FIELDS as PUBLIC_KEY_FIELDS
from fleetcast.http.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    import falcon

    from fleetcast.http.request_state import RequestState
    from fleetcast.http.routes import Route

_OTHER_KEY_FIELD = "Authorization"
KEY_FIELDS = (*PUBLIC_KEY_FIELDS, _OTHER_KEY_FIELD)
"""Header fields that a key may stand in: the first that a request has decides."""
DECIDING_FIELDS = (*PUBLIC_DECIDING_FIELDS, _OTHER_KEY_FIELD)
"""As those of the public listener, with the other place of a key."""


class AdapterPipeline(Pipeline):
    """The same stages, in the same order."""

    routes: Mapping[str, Route] = ROUTES

    def key(self, request: falcon.Request) -> str | None:
        """The key out of `x-api-key`, else out of `Authorization`.

        That is `Token KEY` and `Bearer KEY`, or `Basic` with the key as password.
        """
        key = request.get_header("X-Api-Key")
        if key is not None:
            return key
        scheme, _, credentials = (request.get_header(_OTHER_KEY_FIELD) or "").partition(" ")
        match scheme.lower():
            case "":
                return None
            case "token" | "bearer":
                return credentials.strip()
            case "basic":
                return _password(credentials)
            case _:
                return ""

    def receive_body(self, state: RequestState) -> None:
        """Checks the headers, then takes the body and unpacks it.

        Raises `Refused` (411, 413, 415, 400). Ends as `Pipeline.receive_body`.
        """
        route = state.route
        if not isinstance(route, AdapterRoute) or not route.ingest:
            return
        bytes_max = self.settings.adapters.body_bytes_max
        length = _checked_length(state.request, bytes_max)
        coding = (state.request.get_header("Content-Encoding") or "identity").strip().lower()
        if coding not in route.codings:
            raise refused("unsupported_content_encoding")
        media_type, parameters = parse_header(state.request.content_type or "")
        if route.media_types and media_type.lower() not in route.media_types:
            raise refused("unsupported_media_type")
        if route.message is not None and parameters.get("proto", route.message) != route.message:
            raise refused("unsupported_media_type")
        if state.request.env.get("fleetcast.body_due", False):
            state.response.status = 100
            state.response.complete = True
            return
        # A body in chunks that proves too long is never there in whole.
        body = b"" if length == 0 else read_body(state.request, length)
        state.body = unpacked(body, coding, bytes_max)


def _checked_length(request: falcon.Request, bytes_max: int) -> int:
    """Length of the body as it comes. Raises `Refused`, as `http.body.check_headers`."""
    if request.env.get("fleetcast.oversized", False):
        raise refused("request_too_large")
    if request.env.get("fleetcast.chunked", False):
        body = request.env.get("fleetcast.body")
        return 0 if body is None else len(body)
    text = request.env.get("CONTENT_LENGTH")
    if text is None:
        raise refused("length_required")
    if not (text.isascii() and text.isdigit()):
        raise refused("invalid_content_length")
    if int(text) > bytes_max:
        raise refused("request_too_large")
    return int(text)


def _password(credentials: str) -> str:
    """The password of basic credentials; nothing where they are none."""
    try:
        plain = base64.b64decode(credentials.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return plain.partition(":")[2]
