"""Reading of TOML files."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from fleetcast.errors import OperatorError, reason

if TYPE_CHECKING:
    from pathlib import Path


def read_toml(path: Path) -> dict[str, Any]:
    """The document in a file. Raises `FileNotFoundError`, and `OperatorError` if it is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"{path}: {reason(error, path)}"
        raise OperatorError(message) from error
