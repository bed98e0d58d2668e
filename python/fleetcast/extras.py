"""Extras of the package: the libraries of each extra, and one line about a missing library.

The engine needs no other package. All other parts are in the extras of `pyproject.toml`.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Name under which a library is imported -> the smallest extra that contains it.
EXTRAS = {
    "backports": "server",
    "click": "server",
    "cryptography": "server",
    "duckdb": "bench",
    "falcon": "server",
    "grpc": "client",
    "gunicorn": "server",
    "numpy": "forecast",
    "onnx": "train",
    "onnxruntime": "forecast",
    "paho": "mqtt",
    "pg8000": "bench",
    "polars": "frames",
    "sgp4": "forecast",
}


def is_installed(extra: str) -> bool:
    """Returns true if every library that belongs to `extra` itself is installed."""
    return all(find_spec(library) for library, home in EXTRAS.items() if home == extra)


def remedy(extra: str) -> str:
    """The command that installs an extra. Example: `pip install 'fleetcast[server]'`."""
    return f"pip install 'fleetcast[{extra}]'"


def missing(error: ModuleNotFoundError) -> str | None:
    """One line about a library that is not installed, or `None` if no extra contains it."""
    library = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(library)
    return extra and f"{library} is not installed: {remedy(extra)}"


@contextmanager
def naming_the_extra() -> Iterator[None]:
    """Adds the name of the missing extra to the `ModuleNotFoundError` of an import."""
    try:
        yield
    except ModuleNotFoundError as error:
        line = missing(error)
        if line is None:
            raise
        raise ModuleNotFoundError(line, name=error.name, path=error.path) from None
