"""The description of the public API in OpenAPI 3.1, written by hand."""

from __future__ import annotations

from importlib.metadata import version

from fleetcast.admin.openapi.answers import HEADERS, RESPONSES
from fleetcast.admin.openapi.paths import PATHS
from fleetcast.admin.openapi.schemas import SCHEMAS

_DESCRIPTION = """\
Push time-series telemetry, read the newest state of every entity, measured channels over a window,
and forecasts. Every request belongs to the tenant of its API key. Unknown query parameters are
ignored, but for `/predictions`. Clients must ignore members of answers that they do not know.
"""


def document() -> dict[str, object]:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fleet Telemetry Service",
            "version": version("fleetcast"),
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "telemetry"},
            {"name": "topology"},
            {"name": "predictions"},
            {"name": "account"},
            {"name": "health"},
        ],
        "paths": PATHS,
        "components": {
            "schemas": SCHEMAS,
            "responses": RESPONSES,
            "headers": HEADERS,
            "securitySchemes": {
                "apiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "x-api-key",
                    "description": "A key of this environment; the tenant follows from it.",
                }
            },
        },
    }
