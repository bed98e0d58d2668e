"""Fleet telemetry: a sealed, durable time-series store and its service.

Programs may rely on the names in `__all__`. `docs/python.md` and `docs/client.md` show how to use
them. A name is loaded when a program first asks for it. `GatewayWriter` needs the extra `client`;
the other names need no other package. Example: `from fleetcast import Client`.
"""

from ast import ImportFrom, parse
from importlib import import_module
from pkgutil import get_data

_NAMES = parse(get_data(__name__, "__init__.pyi") or b"").body
_HOMES = {
    alias.name: str(each.module)
    for each in _NAMES
    if isinstance(each, ImportFrom)
    for alias in each.names
}
"""Names of the stub, which type checkers read, and their modules."""

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
