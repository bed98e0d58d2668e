"""Reading of TOML files."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from fleetcast.errors import OperatorError, reason

if TYPE_CHECKING:
    from pathlib import Path

_PLACE = re.compile(r"\(at (line \d+, column \d+)\)$")


def read_toml(path: Path) -> dict[str, Any]:
    """Reads a TOML file. Raises `FileNotFoundError`, and `OperatorError` if it is not TOML."""
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError, OperatorError) as error:
        message = f"{path}: {reason(error, path)}"
        raise OperatorError(message) from error


def parsed(text: str) -> dict[str, Any]:
    """Parses a TOML text. Raises `OperatorError`, which names line and column."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        message = f"{place[1] if place else 'its end'}: is no TOML, or gives a name twice"
        raise OperatorError(message) from error
    except ValueError as error:
        message = "a number has too many digits"
        raise OperatorError(message) from error
    except RecursionError as error:
        message = "its lists or tables are nested too deeply"
        raise OperatorError(message) from error
