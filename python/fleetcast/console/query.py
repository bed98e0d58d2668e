"""Parameters of a request. Each is bounded before it is used."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import parse_qsl

from fleetcast.console.answers import ConsoleRefused
from fleetcast.engine import parse_time

if TYPE_CHECKING:
    from collections.abc import Collection

_PARAMETERS_MAX = 32
_CHARACTERS_MAX = 4_096
_DIGITS_MAX = 12


class ConsoleQuery:
    """The parameters of one request. If a parameter is given twice, the last value counts."""

    def __init__(self, query_string: str) -> None:
        try:
            pairs = parse_qsl(
                query_string,
                keep_blank_values=True,
                errors="strict",
                max_num_fields=_PARAMETERS_MAX,
            )
        except ValueError:
            self.refuse("query", "The query cannot be read.")
        self._values = dict(pairs)

    def text(self, name: str, default: str = "") -> str:
        """Returns a text without control characters."""
        text = self._values.get(name, default)
        if len(text) > _CHARACTERS_MAX or any(character < " " for character in text):
            self.refuse(name, f"{name} is too long, or has characters that no name has.")
        return text

    def needed(self, name: str) -> str:
        """Returns a text; refuses the request if it is missing."""
        return self.text(name) or self.refuse(name, f"{name} is missing.")

    def texts(self, name: str) -> list[str]:
        """Returns the texts of a JSON array. Example: `["link-1", "link-2"]`."""
        try:
            found = json.loads(self.text(name) or "[]")
        except (ValueError, RecursionError):  # also raised by arrays within arrays
            found = None
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            self.refuse(name, f"{name} must be a JSON array of texts.")
        return found

    def choice(self, name: str, allowed: Collection[str], default: str) -> str:
        """Returns one of a few words."""
        text = self.text(name, default)
        if text not in allowed:
            self.refuse(name, f"{name} must be one of {', '.join(sorted(allowed))}.")
        return text

    def whole(self, name: str, default: int, value_max: int) -> int:
        """Returns a whole number from 0 to `value_max`."""
        text = self.text(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
            self.refuse(name, f"{name} must be a whole number.")
        if int(text) > value_max:
            self.refuse(name, f"{name} must be at most {value_max}.")
        return int(text)

    def number(self, name: str, default: float) -> float:
        """Returns a finite number, or `default`, which need not be finite."""
        text = self.text(name)
        if not text:
            return default
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            self.refuse(name, f"{name} must be a number.")
        return found

    def time_ns(self, name: str) -> int | None:
        """Returns nanoseconds since 1970 of an ISO 8601 datetime."""
        text = self.text(name)
        if not text:
            return None
        try:
            return parse_time(text)
        except ValueError:
            self.refuse(name, f"{name} must be a time such as 2026-01-31T12:00:00Z.")

    @staticmethod
    def refuse(name: str, message: str) -> NoReturn:
        """Raises `ConsoleRefused` about a parameter."""
        raise ConsoleRefused(400, "invalid_input", message, field=name)
