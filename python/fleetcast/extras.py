"""Extras of the package: the libraries that each brings, and one line for one that is missing.

The engine needs no other package. All else is in the extras of `pyproject.toml`.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Library as it is imported -> the smallest extra that brings it.
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
    "structlog": "server",
}


def is_installed(extra: str) -> bool:
    """True where every library of `extra` alone is there."""
    return all(find_spec(library) for library, home in EXTRAS.items() if home == extra)


def remedy(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'fleetcast[{extra}]'"


def missing(error: ModuleNotFoundError) -> str | None:
    """One line on a library that is not installed; `None` where no extra brings it."""
    library = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(library)
    return extra and f"{library} is not installed: {remedy(extra)}"


@contextmanager
def naming_the_extra() -> Iterator[None]:
    """Has an import that fails say which extra is missing, in a `ModuleNotFoundError` as before."""
    try:
        yield
    except ModuleNotFoundError as error:
        line = missing(error)
        if line is None:
            raise
        raise ModuleNotFoundError(line, name=error.name, path=error.path) from None
