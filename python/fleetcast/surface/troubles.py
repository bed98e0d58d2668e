"""Why a request is refused, and what to do: a table for pages, answers and the console.

The table in `docs/trouble.md` is made from this one by `tools/tables`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


class Trouble(NamedTuple):
    """A row: error codes with the same cause. Sentences are Markdown, links are as of `docs`."""

    codes: tuple[str, ...]
    cause: str
    advice: str


TROUBLES = (
    Trouble(
        ("bad_request", "expectation_failed", "unsupported_transfer_coding"),
        "The request is not valid HTTP/1.1.",
        "Look at what the client, or a proxy, sends.",
    ),
    Trouble(
        ("uri_too_long", "headers_too_large"),
        "The request line has more than 8,190 bytes, or the head more than 65,536.",
        "Ask for fewer entities at a time.",
    ),
    Trouble(
        ("not_found", "unknown_service"),
        "No such path, or no such gRPC method.",
        "Paths match exactly: no slash at the end.",
    ),
    Trouble(
        ("method_not_allowed",),
        "The path has other methods.",
        "Use a method of the header `Allow`.",
    ),
    Trouble(
        ("rate_limited",),
        "The address has sent more than `limits.requests_per_minute`.",
        "Send larger batches, or add the network to `limits.exempt`. Behind a proxy set "
        "`http.trusted_proxies`.",
    ),
    Trouble(
        ("auth_lockout",),
        "The address has sent `limits.lockout_failures` refused keys.",
        "Correct the key, then wait for `limits.lockout_seconds`.",
    ),
    Trouble(
        ("too_many_calls",),
        "The address has too many gRPC calls without a key under way.",
        "Ask for health less often.",
    ),
    Trouble(
        ("auth_failed",),
        "The key is missing, wrong, revoked, expired, or of another environment.",
        "Send the key as `x-api-key`, or to the adapter listener as `Authorization`. `fleetcast "
        "key list TENANT` shows the keys and their ends.",
    ),
    Trouble(
        ("tenant_disabled",),
        "The tenant is disabled.",
        "`fleetcast tenant enable NAME`",
    ),
    Trouble(
        ("tenant_unknown",),
        "The key's tenant was deleted.",
        "Make a tenant and a key.",
    ),
    Trouble(
        ("insufficient_scope",),
        "The key lacks the scope of the path.",
        "Make a key with the scope, for example `topology:read`.",
    ),
    Trouble(
        ("live_ingest_not_entitled",),
        "The tenant may not write over the network.",
        "`fleetcast tenant show NAME`; imports work.",
    ),
    Trouble(
        ("predictions_not_enabled",),
        "`forecast.families` is empty, or the extra `forecast` is missing.",
        "Set the families, or install the extra.",
    ),
    Trouble(
        ("length_required", "invalid_content_length"),
        "The body has no `Content-Length`, or a wrong one.",
        "`POST /telemetry` accepts no chunks; the adapter listener does.",
    ),
    Trouble(
        ("request_too_large", "batch_too_large"),
        "The body has too many bytes, or is gzip of more than 1,024 members, or the batch has too "
        "many records.",
        "Send smaller batches, or raise the bound: `limits`, `grpc` or `adapters` of the "
        "[settings](operations.md#settings).",
    ),
    Trouble(
        ("unsupported_content_encoding", "unsupported_encoding", "unsupported_media_type"),
        "The body is compressed in a way that is not accepted, or of another type.",
        "Use one of the [types and compressions](adapters.md) of the path.",
    ),
    Trouble(
        ("read_deadline_exceeded",),
        "The client took too long to send a gRPC message.",
        "Look at the network, or send smaller batches.",
    ),
    Trouble(
        ("schema_faults",),
        "The JSON is not an array of records. `detail` names each place.",
        "Correct the fields that `detail` names.",
    ),
    Trouble(
        ("invalid_input",),
        "A tag or field is not valid, or the batch would pass a bound on the tenant's names. "
        "`field` names the part.",
        "If the log says `a tenant is full`: `fleetcast describe TENANT` shows the names.",
    ),
    Trouble(
        ("field_type_conflict",),
        "A field was written with another type before.",
        "Keep the type, or give the field another name.",
    ),
    Trouble(
        ("missing_link_ids", "too_many_link_ids"),
        "`GET /predictions` needs 1 to `limits.link_ids_max` links.",
        "Ask several times.",
    ),
    Trouble(
        ("invalid_query_parameter", "unknown_query_parameter"),
        "A parameter of the query is not valid.",
        "`/openapi.json` of the private listener has all parameters.",
    ),
    Trouble(
        ("unknown_measurement",),
        "Six measurements can be asked for by name.",
        "Map your names to one of the six: [names](adapters.md#names).",
    ),
    Trouble(
        ("agg_requires_interval", "interval_required", "interval_too_fine"),
        "The span is too long without an interval, or has too many steps.",
        "Set `interval`, or a longer interval.",
    ),
    Trouble(
        ("invalid_range", "history_horizon_exceeded"),
        "The start is not before the end, or lies more than `limits.history_horizon_days` back.",
        "Change the window.",
    ),
    Trouble(
        ("ingest_buffer_full",),
        "The disk is slower than the writes, or the tenant holds its "
        "[share](operations.md#shares-of-a-tenant).",
        "Wait and send again. If it stays: alert `FleetcastBufferFull`.",
    ),
    Trouble(
        ("auth_unavailable", "entitlement_unavailable"),
        "The store of tenants and keys cannot be read.",
        "`fleetcast doctor`",
    ),
    Trouble(
        ("tenant_unavailable", "telemetry_unavailable"),
        "The tenant's store cannot be opened, read or written: a full disk, damage, a clock "
        "before 2020.",
        "`/readyz` names the store; `fleetcast doctor`, then `fleetcast verify TENANT`.",
    ),
    Trouble(
        ("prediction_store_unavailable",),
        "The store of forecasts cannot be read or written.",
        "`/readyz`; the disk may be full.",
    ),
    Trouble(
        ("internal_error", "internal"),
        "A mistake of the service.",
        "Report it with the lines of the log that have the answer's `X-Request-Id`.",
    ),
)


def _plain(trouble: Trouble) -> str:
    return _LINK.sub(r"\1", f"{trouble.cause} {trouble.advice}").replace("`", "")


EXPLANATIONS = {code: _plain(trouble) for trouble in TROUBLES for code in trouble.codes}
"""Cause and advice of each code as plain text."""
