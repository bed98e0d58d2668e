"""Fleet telemetry: a sealed, durable time-series store and its service.

Programs may rely on the names in `__all__`. `docs/python.md` and `docs/client.md` show how to use
them. A name is loaded when a program first asks for it. `GatewayWriter` needs the extra `client`;
the other names need no other package. Example: `from fleetcast import Client`.
"""

from importlib import import_module


def __getattr__(name: str) -> object:
    if name == "__version__":
        found: object = import_module("fleetcast.engine").VERSION
    elif name == "__all__":
        found = ["__version__", *_homes()]
    elif home := _homes().get(name):
        found = getattr(import_module(home), name)
    else:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = found
    return found


def _homes() -> dict[str, str]:
    """Returns the module of each name. The stub has them, for type checkers too."""
    ast = import_module("ast")
    stub = import_module("pkgutil").get_data(__name__, "__init__.pyi")
    imports = (each for each in ast.parse(stub).body if isinstance(each, ast.ImportFrom))
    return {alias.name: each.module for each in imports for alias in each.names}


def __dir__() -> list[str]:
    return sorted({*globals(), "__version__", *_homes()})
