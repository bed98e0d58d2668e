"""Why requests are refused, in a sentence for each code."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_NO_HTTP = "The client, or a proxy, sends what is not valid HTTP/1.1."
_TOO_LONG = "The address or the head is too long: ask for fewer entities at a time."
_NO_LENGTH = "The body has no Content-Length, or a wrong one."
_TOO_LARGE = "The batch is too large: send smaller batches, or raise the bound in the settings."
_CODED = "The body is compressed in a way, or of a type, that is not accepted."
_PARAMETER = "A parameter of the query is not valid."
_STEPS = "The span is too long for its interval: set a longer interval."
_WINDOW = "The window is the wrong way round, or too long ago."
_LINKS = "Forecasts are of one link, or of a few: name them."
_ACCOUNTS = "Tenants and keys cannot be read: run fleetcast doctor."
_STORE = "The tenant's store cannot be opened, read or written: run fleetcast doctor."
_FAULT = "This is a fault of the service: report it with its lines of the log."

REASONS: Mapping[str, str] = {
    "bad_request": _NO_HTTP,
    "uri_too_long": _TOO_LONG,
    "expectation_failed": _NO_HTTP,
    "headers_too_large": _TOO_LONG,
    "unsupported_transfer_coding": _NO_HTTP,
    "not_found": "No such path. Paths match exactly, without a slash at the end.",
    "unknown_service": "No such gRPC method.",
    "method_not_allowed": "The path has other methods.",
    "rate_limited": "The address sends too many requests a minute: send larger batches.",
    "auth_lockout": "The address has sent too many bad keys: correct the key, then wait.",
    "too_many_calls": "The address has too many gRPC calls without a key under way.",
    "auth_failed": "The key is missing, wrong, revoked, expired, or of another environment.",
    "tenant_disabled": "The tenant is disabled: fleetcast tenant enable NAME lets it in again.",
    "tenant_unknown": "The key's tenant was deleted.",
    "insufficient_scope": "The key lacks the scope of the path: make a key with the scope.",
    "live_ingest_not_entitled": "The tenant may not write over the network.",
    "predictions_not_enabled": "forecast.families is empty, or the extra forecast is missing.",
    "length_required": _NO_LENGTH,
    "invalid_content_length": _NO_LENGTH,
    "request_too_large": _TOO_LARGE,
    "unsupported_content_encoding": _CODED,
    "unsupported_encoding": _CODED,
    "unsupported_media_type": _CODED,
    "read_deadline_exceeded": "The client took too long to send a message.",
    "schema_faults": "The body is no array of records; the answer names each place.",
    "invalid_input": "A tag or field is not valid, or the tenant has too many names.",
    "batch_too_large": _TOO_LARGE,
    "field_type_conflict": "A field was written with another type before.",
    "missing_link_ids": _LINKS,
    "too_many_link_ids": _LINKS,
    "invalid_query_parameter": _PARAMETER,
    "unknown_query_parameter": _PARAMETER,
    "unknown_measurement": "The measurement is none of the six that can be asked for by name.",
    "agg_requires_interval": _STEPS,
    "invalid_range": _WINDOW,
    "history_horizon_exceeded": _WINDOW,
    "interval_required": _STEPS,
    "interval_too_fine": _STEPS,
    "ingest_buffer_full": "The disk is slower than the writes, or the tenant holds its share.",
    "auth_unavailable": _ACCOUNTS,
    "entitlement_unavailable": _ACCOUNTS,
    "tenant_unavailable": _STORE,
    "telemetry_unavailable": _STORE,
    "prediction_store_unavailable": "The store of forecasts cannot be read or written.",
    "internal_error": _FAULT,
    "internal": _FAULT,
}
