"""Every answer of the public API by its status, with its headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.admin.openapi.schemas import MEASUREMENTS, error, listed, ref

if TYPE_CHECKING:
    from fleetcast.admin.openapi.schemas import Schema

_SECONDS: Schema = {"type": "integer", "minimum": 1}
_TEXT: Schema = {"type": "string"}

HEADERS: dict[str, Schema] = {
    "X-Request-Id": {
        "description": "Names the request in the log of the service.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    },
    "Cache-Control": {"required": True, "schema": {"const": "no-store"}},
    "X-Content-Type-Options": {"required": True, "schema": {"const": "nosniff"}},
    "Retry-After": {
        "description": "Seconds to wait before the next attempt.",
        "required": True,
        "schema": _SECONDS,
    },
    "Allow": {
        "description": "Methods of the path.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Z]+(?:, [A-Z]+)*$"},
    },
    "WWW-Authenticate": {
        "required": True,
        "schema": {"const": 'ApiKey realm="fleet-telemetry"'},
    },
    "Accept-Encoding": {"required": True, "schema": {"const": "identity"}},
}
_ALWAYS = ("X-Request-Id", "Cache-Control", "X-Content-Type-Options")


def answer(description: str, schema: Schema | None, *headers: str) -> Schema:
    """A response; no schema is no body."""
    made: Schema = {
        "description": description,
        "headers": {
            name: {"$ref": f"#/components/headers/{name}"} for name in (*_ALWAYS, *headers)
        },
    }
    return made if schema is None else {**made, "content": {"application/json": {"schema": schema}}}


def one_of(*schemas: Schema) -> Schema:
    """One of several bodies."""
    return {"oneOf": list(schemas)} if len(schemas) > 1 else schemas[0]


def _unavailable(*schemas: Schema) -> Schema:
    return answer("A dependency is unavailable for now.", one_of(*schemas), "Retry-After")


_FIELD = {"field": _TEXT}
_WAIT = {"retry_after_seconds": _SECONDS}
_MIN_INTERVAL = {"min_interval": ref("MinInterval")}
_PARSER_400 = error("bad_request", "invalid_content_length")
_TENANT_503 = (error("auth_unavailable", **_WAIT), error("tenant_unavailable", **_WAIT))
_BACKEND_503 = error("telemetry_unavailable", upstream=_TEXT, **_WAIT)

RESPONSES: dict[str, Schema] = {
    "BadRequest": answer("The head of the request is malformed.", _PARSER_400),
    "BadTelemetry": answer(
        "Nothing of the batch was written.",
        one_of(_PARSER_400, error("invalid_input", "field_type_conflict", **_FIELD)),
    ),
    "BadRead": answer(
        "A parameter holds what no store accepts.",
        one_of(_PARSER_400, error("invalid_input", **_FIELD)),
    ),
    "BadPredictions": answer(
        "A parameter is wrong.",
        one_of(
            _PARSER_400,
            error("missing_link_ids"),
            error("too_many_link_ids", max=_SECONDS),
            error("invalid_query_parameter", "unknown_query_parameter", parameter=_TEXT),
        ),
    ),
    "Unauthenticated": answer(
        "The key is missing or not good here.", error("auth_failed"), "WWW-Authenticate"
    ),
    "Forbidden": answer(
        "The key lacks the scope, or the tenant is disabled.",
        error("insufficient_scope", "tenant_disabled"),
    ),
    "TenantDisabled": answer("The tenant is disabled.", error("tenant_disabled")),
    "ForbiddenWrite": answer(
        "The key lacks the scope, the account may not write, or the tenant is disabled.",
        error("insufficient_scope", "live_ingest_not_entitled", "tenant_disabled"),
    ),
    "TenantUnknown": answer("The key's tenant is gone.", error("tenant_unknown")),
    "NoPredictions": answer(
        "Predictions are not served here, or the key's tenant is gone.",
        error("predictions_not_enabled", "tenant_unknown"),
    ),
    "MethodNotAllowed": answer(
        "The path does not know the method.", error("method_not_allowed"), "Allow"
    ),
    "LengthRequired": answer("There is no Content-Length.", error("length_required")),
    "TooLarge": answer(
        "Too many records, or too many bytes.",
        one_of(
            error("request_too_large"),
            error("batch_too_large", max=_SECONDS, received=_SECONDS),
        ),
    ),
    "UriTooLong": answer("The request line is too long.", error("uri_too_long")),
    "UnsupportedEncoding": answer(
        "The body is compressed.", error("unsupported_content_encoding"), "Accept-Encoding"
    ),
    "ExpectationFailed": answer("An unknown Expect header.", error("expectation_failed")),
    "Unprocessable": answer("Parameters or body have the wrong form.", ref("SchemaFaults")),
    "UnprocessableSeries": answer(
        "Parameters have the wrong form, or ask for too much.",
        one_of(
            ref("SchemaFaults"),
            error(
                "unknown_measurement",
                allowed=listed({"type": "string", "enum": MEASUREMENTS}),
            ),
            error("agg_requires_interval", "invalid_range"),
            error("history_horizon_exceeded", horizon_days=_SECONDS),
            error("interval_required", "interval_too_fine", **_MIN_INTERVAL),
        ),
    ),
    "TooManyRequests": answer(
        "The rate limit, or a lockout after too many bad keys.",
        error("rate_limited", "auth_lockout"),
        "Retry-After",
    ),
    "HeadersTooLarge": answer("The head of the request is too long.", error("headers_too_large")),
    "InternalError": answer(
        "A fault of the service; tell its operator the id.",
        error("internal_error", request_id=_TEXT),
    ),
    "NotImplemented": answer("An unknown transfer coding.", error("unsupported_transfer_coding")),
    "WriteUnavailable": _unavailable(
        error("entitlement_unavailable", "tenant_unavailable", "ingest_buffer_full", **_WAIT),
        _BACKEND_503,
    ),
    "ReadUnavailable": _unavailable(*_TENANT_503, _BACKEND_503),
    "PredictionsUnavailable": _unavailable(
        *_TENANT_503, error("prediction_store_unavailable", **_WAIT), _BACKEND_503
    ),
    "Degraded": answer("A dependency is not well.", ref("Health"), "Retry-After"),
    "Options": answer("The methods of the path.", None, "Allow"),
}
