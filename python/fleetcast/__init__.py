"""Fleet telemetry: a sealed, durable time-series store and its service.

Programs may rely on the names in `__all__`. `docs/python.md` and `docs/client.md` show how to use
them. A name is loaded when a program first asks for it. `GatewayWriter` needs the extra `client`;
the other names need no other package. Example: `from fleetcast import Client`.
"""

from importlib import import_module

_NAMES = {
    "fleetcast.client": (
        "ApiError",
        "Client",
        "GatewayWriter",
        "Options",
        "Record",
        "RefusedBatch",
        "SpoolFull",
        "SpoolInUse",
        "Tally",
    ),
    "fleetcast.engine": (
        "AGGREGATIONS",
        "INTERVALS",
        "MEASUREMENTS",
        "ArrowStream",
        "Compacted",
        "Deleted",
        "Engine",
        "Plane",
        "RowBatch",
        "RowStream",
        "Stats",
        "TextFormat",
        "Verified",
        "WriteResult",
        "encode_protobuf",
        "encode_records",
        "field_of_column",
        "format_time",
        "parse_time",
        "peek",
    ),
    "fleetcast.errors": (
        "Refused",
        "StoreDamaged",
        "StoreError",
        "StoreExists",
        "StoreFull",
        "StoreMissing",
        "StoreUnavailable",
        "StoreUnreachable",
        "TenantFull",
    ),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 - every item is a str


def __getattr__(name: str) -> object:
    if name == "__version__":
        found: object = import_module("importlib.metadata").version(__name__)
    elif name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    else:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
