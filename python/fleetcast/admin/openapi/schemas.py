"""What bodies and parameters are made of."""

from __future__ import annotations

Schema = dict[str, object]

MEASUREMENTS = ["link", "satellite", "ground_station", "weather", "attenuation", "telemetry"]
INTERVALS = ["15s", "30s", "1m", "5m", "15m", "1h"]
AGGREGATIONS = ["mean", "min", "max", "last"]
SCOPES = ["telemetry:write", "topology:read", "predictions:read"]

_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_LEAP_DAY = (
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29"
)
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_OFFSET = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])"
TIME_PATTERN = (
    f"^(?:{_YEAR}-{_DAY}|{_LEAP_DAY})(?:[Tt ]{_CLOCK}(?::[0-5][0-9](?:[.,][0-9]+)?)?{_OFFSET}?)?$"
)
"""The grammar of times (D1), days of months and leap years included."""
PLAIN_TEXT_PATTERN = "^[^\\u0000-\\u001f\\u007f]*$"


def ref(name: str) -> Schema:
    """A reference to a schema below."""
    return {"$ref": f"#/components/schemas/{name}"}


def record(properties: Schema, *optional: str, description: str = "") -> Schema:
    """An object with these members, all required but the optional ones."""
    made: Schema = {
        "type": "object",
        "required": [name for name in properties if name not in optional],
        "properties": properties,
    }
    return {**made, "description": description} if description else made


def error(*codes: str, **more: Schema) -> Schema:
    """The body of an error: one of `codes`, and its own members."""
    code: Schema = {"const": codes[0]} if len(codes) == 1 else {"enum": list(codes)}
    return {**record({"error": {"type": "string", **code}, **more}), "additionalProperties": False}


def nullable(*kinds: str) -> Schema:
    """A value that may be null."""
    return {"type": [*kinds, "null"]}


def listed(items: Schema, **more: object) -> Schema:
    """An array."""
    return {"type": "array", "items": items, **more}


_STRING: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_TEXT_MAP: Schema = {"type": "object", "additionalProperties": _STRING}
_CELL: Schema = {"type": ["boolean", "number", "string"]}
_INTERVAL: Schema = {"type": "string", "enum": INTERVALS}

SCHEMAS: dict[str, Schema] = {
    "TimeInput": {
        "type": "string",
        "pattern": TIME_PATTERN,
        "description": "ISO 8601; UTC where there is no offset; a date alone is its midnight.",
        "examples": ["2026-01-31T12:00:00Z"],
    },
    "Time": {
        "type": "string",
        "pattern": "^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
        "(?:\\.(?:[0-9]{3}|[0-9]{6}|[0-9]{9}))?Z$",
        "description": "UTC with 0, 3, 6 or 9 fractional digits.",
    },
    "TelemetryRecord": record(
        {
            "measurement": {"type": "string", "minLength": 1},
            "time": ref("TimeInput"),
            "tags": {
                "type": "object",
                "maxProperties": 64,
                "propertyNames": {"minLength": 1},
                "additionalProperties": _STRING,
                "description": "`entity_id` names the entity. Set it on every record.",
            },
            "fields": {
                "type": "object",
                "maxProperties": 4096,
                "propertyNames": {"minLength": 1},
                "additionalProperties": _CELL,
                "description": "Numbers are stored as doubles.",
            },
        },
        "tags",
        "fields",
        description="Without fields, or before 2000, a record is rejected on its own.",
    ),
    "WriteAcknowledgment": record(
        {
            "write_id": {"type": "string", "format": "uuid"},
            "accepted_count": _COUNT,
            "rejected_count": _COUNT,
            "rejected_indices": {"type": ["array", "null"], "items": _COUNT, "minItems": 1},
        }
    ),
    "TopologyEntity": record(
        {
            "measurement": {"type": "string", "minLength": 1},
            "entity_id": {"type": "string", "minLength": 1},
            "observed_at": ref("Time"),
            "tags": _TEXT_MAP,
            "fields": {"type": "object", "additionalProperties": _CELL},
        }
    ),
    "Topology": record(
        {
            "as_of_utc": ref("Time"),
            "tenant_key": _STRING,
            "entities": listed(ref("TopologyEntity")),
            "simulation": {
                "type": "object",
                "description": "Present only where the geometry is generated.",
            },
        },
        "simulation",
    ),
    "SeriesEntity": record(
        {
            "entity_id": _STRING,
            "times": listed(ref("Time")),
            "channels": {
                "type": "object",
                "additionalProperties": listed({"type": ["number", "null"]}),
            },
            "point_count": _COUNT,
        }
    ),
    "Series": record(
        {
            "measurement": {"type": "string", "enum": MEASUREMENTS},
            "start": ref("Time"),
            "end": ref("Time"),
            "interval": {"type": ["string", "null"], "enum": [*INTERVALS, None]},
            "agg": {"type": ["string", "null"], "enum": [*AGGREGATIONS, None]},
            "series": listed(ref("SeriesEntity"), minItems=1, maxItems=16),
            "truncated": {"type": "boolean"},
            "next_start": {"anyOf": [ref("Time"), {"type": "null"}]},
        }
    ),
    "Prediction": record(
        {
            "link_id": _STRING,
            "horizon_minutes": {"type": "integer", "minimum": 1},
            "predicted_at": ref("Time"),
            "assignment_id": _STRING,
            "lease_id": _STRING,
            "model_version": _STRING,
            "feature_view_id": _STRING,
            "model_release_id": nullable("string"),
            "traffic_role": nullable("string"),
            "value": {"anyOf": [ref("SnrValue"), ref("DemandValue")]},
            "demand": ref("Demand"),
        },
        "demand",
    ),
    "SnrValue": record(
        {name: {"type": "number"} for name in ("snr_db_p10", "snr_db_p50", "snr_db_p90")}
    ),
    "DemandValue": record(
        {
            name: {"type": "number", "minimum": 0}
            for name in ("offered_bytes_p10", "offered_bytes_p50", "offered_bytes_p99")
        }
    ),
    "Demand": record(
        {
            "pool_id": _STRING,
            "pool_tags": _TEXT_MAP,
            "issued_at": ref("Time"),
            "window_start": ref("Time"),
            "window_end": ref("Time"),
        }
    ),
    "EntityError": record(
        {"entity_id": _STRING, "code": nullable("string"), "message": _STRING},
        description="Branch on the code, not on the message.",
    ),
    "Predictions": record(
        {
            "model_family": {"type": "string", "enum": ["snr", "demand"]},
            "captured_at": ref("Time"),
            "model_release_id": nullable("string"),
            "traffic_role": nullable("string"),
            "items": listed(ref("Prediction")),
            "entity_errors": listed(ref("EntityError")),
        }
    ),
    "AccountState": record(
        {
            "tenant_key": _STRING,
            "account_id": _STRING,
            "environment": _STRING,
            "plan": _STRING,
            "status": {"type": "string", "enum": ["active"]},
            "scopes": listed({"type": "string", "enum": SCOPES}),
            "entitlements": record(
                {
                    "live_ingest": {"type": "boolean"},
                    "predictions": listed({"type": "string", "enum": ["snr", "demand"]}),
                }
            ),
            "limits": {"type": "object", "additionalProperties": _COUNT},
            "usage": record(
                {
                    "records_accepted_total": _COUNT,
                    "records_rejected_total": _COUNT,
                    "requests_total": _COUNT,
                    "storage_bytes": _COUNT,
                    "series_count": _COUNT,
                    "period_start": {"anyOf": [ref("Time"), {"type": "null"}]},
                }
            ),
            "as_of_utc": ref("Time"),
        }
    ),
    "Health": record(
        {
            "status": {"type": "string", "enum": ["ok", "degraded"]},
            "checks": {
                "type": "object",
                "additionalProperties": record({"ok": {"type": "boolean"}, "detail": _STRING}),
            },
        }
    ),
    "SchemaFaults": record(
        {
            "detail": listed(
                record(
                    {
                        "type": _STRING,
                        "loc": listed({"type": ["string", "integer"]}),
                        "msg": _STRING,
                    }
                ),
                minItems=1,
                maxItems=100,
            )
        },
        description="What is wrong with the request, place by place.",
    ),
    "MinInterval": {"anyOf": [_INTERVAL, {"type": "null"}]},
}
