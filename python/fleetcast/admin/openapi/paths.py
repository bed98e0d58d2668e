"""The paths of the public API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.admin.openapi.answers import answer
from fleetcast.admin.openapi.schemas import (
    AGGREGATIONS,
    INTERVALS,
    MEASUREMENTS,
    PLAIN_TEXT_PATTERN,
    listed,
    ref,
)

if TYPE_CHECKING:
    from fleetcast.admin.openapi.schemas import Schema

_EVERYWHERE = {
    "400": "BadRequest",
    "405": "MethodNotAllowed",
    "414": "UriTooLong",
    "417": "ExpectationFailed",
    "429": "TooManyRequests",
    "431": "HeadersTooLarge",
    "500": "InternalError",
    "501": "NotImplemented",
}
_WITH_KEY = {"401": "Unauthenticated", "403": "Forbidden", "404": "TenantUnknown"}
_TEXT: Schema = {"type": "string", "pattern": PLAIN_TEXT_PATTERN}


def _query(name: str, schema: Schema, description: str, *, required: bool = False) -> Schema:
    return {
        "name": name,
        "in": "query",
        "description": description,
        "required": required,
        "schema": schema,
        **({"style": "form", "explode": True} if schema.get("type") == "array" else {}),
    }


def _operation(
    name: str, tag: str, summary: str, responses: Schema, **more: object
) -> dict[str, object]:
    return {"operationId": name, "tags": [tag], "summary": summary, **more, "responses": responses}


def _responses(success: dict[str, Schema], *others: dict[str, str]) -> Schema:
    made: dict[str, Schema] = dict(success)
    for names in (_EVERYWHERE, *others):
        made |= {
            status: {"$ref": f"#/components/responses/{name}"} for status, name in names.items()
        }
    return dict(sorted(made.items()))


def _bodiless(responses: Schema) -> Schema:
    """The same answers to HEAD: only their heads come."""
    success = {
        status: {name: part for name, part in response.items() if name != "content"}
        for status, response in responses.items()
        if isinstance(response, dict) and "$ref" not in response
    }
    others = {
        status: {"description": "As for GET, without its body."}
        for status in responses
        if status not in success
    }
    return dict(sorted({**success, **others}.items()))


def _readable(path: str, operation: dict[str, object]) -> Schema:
    """GET, HEAD and OPTIONS of a path."""
    head = {
        **operation,
        "operationId": f"{operation['operationId']}Head",
        "summary": f"{operation['summary']} The head of the answer only.",
        "responses": _bodiless(operation["responses"]),  # type: ignore[arg-type] # of `_operation`
    }
    return {"get": operation, "head": head, "options": _options(path)}


def _options(path: str) -> Schema:
    name = "".join(part.capitalize() for part in path.split("/"))
    return {
        "operationId": f"options{name}",
        "tags": [path.split("/")[1]],
        "summary": "The methods of the path; needs no key.",
        "security": [],
        "responses": {
            "204": {"$ref": "#/components/responses/Options"},
            **{
                status: {"$ref": f"#/components/responses/{name}"}
                for status, name in _EVERYWHERE.items()
            },
        },
    }


_KEY: list[dict[str, list[str]]] = [{"apiKey": []}]

_HEALTH = {
    path: _readable(
        path,
        _operation(
            "health" + "".join(part.capitalize() for part in path.split("/")[2:]),
            "health",
            summary,
            _responses({"200": answer("It is well.", ref("Health"))}, others),
            security=[],
        ),
    )
    for path, summary, others in (
        ("/health", "Whether the process serves.", {}),
        ("/health/telemetry", "Whether telemetry can be written.", {"503": "Degraded"}),
        ("/health/topology", "Whether telemetry can be read.", {"503": "Degraded"}),
        ("/health/predictions", "Whether predictions can be read.", {"503": "Degraded"}),
    )
}

_TELEMETRY: Schema = {
    "post": _operation(
        "writeTelemetry",
        "telemetry",
        "Writes a batch of records; nothing deduplicates it.",
        _responses(
            {"202": answer("The batch is written.", ref("WriteAcknowledgment"))},
            _WITH_KEY,
            {
                "400": "BadTelemetry",
                "403": "ForbiddenWrite",
                "411": "LengthRequired",
                "413": "TooLarge",
                "415": "UnsupportedEncoding",
                "422": "Unprocessable",
                "503": "WriteUnavailable",
            },
        ),
        description="Needs the scope `telemetry:write`. `Content-Length` is required.",
        security=_KEY,
        requestBody={
            "required": True,
            "description": "At most 1 MiB.",
            "content": {
                "application/json": {"schema": listed(ref("TelemetryRecord"), maxItems=1000)}
            },
        },
    ),
    "options": _options("/telemetry"),
}

_TOPOLOGY = _readable(
    "/topology",
    _operation(
        "readTopology",
        "topology",
        "The newest sample of every entity within a window.",
        _responses(
            {"200": answer("By measurement and entity.", ref("Topology"))},
            _WITH_KEY,
            {"400": "BadRead", "422": "Unprocessable", "503": "ReadUnavailable"},
        ),
        description="Needs the scope `topology:read`.",
        security=_KEY,
        parameters=[
            _query("as_of_utc", ref("TimeInput"), "End of the window, exclusive; now by default."),
            _query(
                "measurement", {"type": "string", "enum": MEASUREMENTS}, "All where there is none."
            ),
            _query(
                "freshness_seconds",
                {"type": "number", "minimum": 1, "maximum": 604800, "default": 300},
                "Length of the window.",
            ),
        ],
    ),
)

_SERIES = _readable(
    "/topology/series",
    _operation(
        "readSeries",
        "topology",
        "Measured channels of named entities over a window.",
        _responses(
            {"200": answer("One entry per entity, in order.", ref("Series"))},
            _WITH_KEY,
            {"400": "BadRead", "422": "UnprocessableSeries", "503": "ReadUnavailable"},
        ),
        description="Needs the scope `topology:read`. An answer is cut at one time for all entities"
        " where it would pass the point budget or `limits.answer_values_max` values, times and"
        " nulls included: then `truncated` is true, and the rest begins at `next_start`.",
        security=_KEY,
        parameters=[
            _query(
                "entity_id",
                listed({**_TEXT, "minLength": 1}, minItems=1, maxItems=16),
                "Repeat it for each entity; duplicates are collapsed.",
                required=True,
            ),
            _query("start", ref("TimeInput"), "Inclusive.", required=True),
            _query("end", ref("TimeInput"), "Exclusive; now by default."),
            _query(
                "measurement",
                {"type": "string", "enum": MEASUREMENTS, "default": "telemetry"},
                "The one measurement that is read.",
            ),
            _query("fields", _TEXT, "Names with commas between; all numeric ones by default."),
            _query(
                "interval",
                {"type": "string", "enum": INTERVALS},
                "Aggregation window; required where the span exceeds an hour.",
            ),
            _query(
                "agg",
                {"type": "string", "enum": AGGREGATIONS},
                "`mean` by default where there is an interval; an error without one.",
            ),
        ],
    ),
)

_PREDICTIONS = _readable(
    "/predictions",
    _operation(
        "readPredictions",
        "predictions",
        "Forecasts, and the entities that have none.",
        _responses(
            {"200": answer("Look at both lists.", ref("Predictions"))},
            _WITH_KEY,
            {
                "400": "BadPredictions",
                "404": "NoPredictions",
                "422": "Unprocessable",
                "503": "PredictionsUnavailable",
            },
        ),
        description="Needs the scope `predictions:read`. Unknown parameters are refused.",
        security=_KEY,
        parameters=[
            _query(
                "model_family",
                {"type": "string", "enum": ["snr", "demand"], "default": "snr"},
                "What is forecast.",
            ),
            _query(
                "link_ids",
                listed({"type": "string", "minLength": 1}, minItems=1, maxItems=100),
                "Repeat it for each link or pool; duplicates are collapsed.",
                required=True,
            ),
            _query(
                "horizon_minutes",
                {"type": "integer", "minimum": 1},
                "One that the model serves; all by default.",
            ),
        ],
    ),
)

_ACCOUNT = _readable(
    "/account/state",
    _operation(
        "readAccountState",
        "account",
        "The caller's own limits, entitlements and usage.",
        _responses(
            {"200": answer("Of the key's account.", ref("AccountState"))},
            _WITH_KEY,
            {"403": "TenantDisabled", "503": "ReadUnavailable"},
        ),
        description="For any valid key.",
        security=_KEY,
    ),
)

PATHS: dict[str, Schema] = {
    **_HEALTH,
    "/telemetry": _TELEMETRY,
    "/topology": _TOPOLOGY,
    "/topology/series": _SERIES,
    "/predictions": _PREDICTIONS,
    "/account/state": _ACCOUNT,
}
