"""Query parameters: decoded, checked, and every problem of a request listed together.

Faults are items of a 422 `detail` list: `{"type", "loc", "msg"}`. Bytes that are not UTF-8 are
kept as lone surrogates, so that the check of characters can tell them from any real text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from fleetcast.engine import parse_time
from fleetcast.errors import refused

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")  # `int` refuses more than 4,300 digits
_REFUSED_CHARACTERS = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LOST_PLUS = re.compile(r".* [0-9]{2}:?[0-9]{2}")
_NOT_A_TIME = "Input should be an ISO 8601 datetime"
_PLUS_HINT = "; in a URL a + is written %2B, or give the time in UTC with Z"
_NOT_WHOLE = "Input should be a valid integer, unable to parse string as an integer"
_NOT_A_NUMBER = "Input should be a valid number, unable to parse string as a number"


class Query:
    """The parameters of one request. Call `finish` after the last one has been asked for."""

    def __init__(self, query_string: str) -> None:
        self._values: dict[str, list[str]] = {}
        self._faults: list[dict[str, object]] = []
        for pair in query_string.split("&"):
            if pair:
                name, _, value = pair.partition("=")
                self._values.setdefault(_decode(name), []).append(_decode(value))

    @property
    def names(self) -> list[str]:
        """The parameters that were given, in their order."""
        return list(self._values)

    def given(self, name: str) -> list[str]:
        """Every value of a parameter, unchecked."""
        return self._values.get(name, [])

    def text(self, name: str) -> str | None:
        """A parameter that may be given once."""
        values = self._values.get(name, [])
        if len(values) > 1:
            self._fault("multiple_values", name, "Input should be given once")
            return None
        return values[0] if values else None

    def time(self, name: str, *, required: bool = False) -> int | None:
        """Nanoseconds since 1970 of an ISO 8601 datetime."""
        text = self.text(name)
        if text is None:
            if required and name not in self._values:
                self._fault("missing", name, "Field required")
            return None
        try:
            return parse_time(text)
        except ValueError:
            hint = _PLUS_HINT if _LOST_PLUS.fullmatch(text) else ""
            self._fault("datetime_from_date_parsing", name, _NOT_A_TIME + hint)
            return None

    def number(self, name: str, *, default: float, value_min: float, value_max: float) -> float:
        """A number in the grammar of JSON, with a leading + allowed."""
        text = self.text(name)
        if text is None:
            return default
        if _NUMBER.fullmatch(text) is None:
            self._fault("float_parsing", name, _NOT_A_NUMBER)
            return default
        value = float(text)
        if value < value_min:
            bound = f"Input should be greater than or equal to {value_min:g}"
            self._fault("greater_than_equal", name, bound)
        elif value > value_max:
            bound = f"Input should be less than or equal to {value_max:.0f}"
            self._fault("less_than_equal", name, bound)
        return value

    def whole(self, name: str) -> int | None:
        """A whole number."""
        text = self.text(name)
        if text is None:
            return None
        if _WHOLE.fullmatch(text) is None:
            self._fault("int_parsing", name, _NOT_WHOLE)
            return None
        return int(text)

    def choice(self, name: str, allowed: Sequence[str]) -> str | None:
        """One of a few words."""
        text = self.text(name)
        if text is None or text in allowed:
            return text
        words = [f"'{word}'" for word in allowed]
        listed = f"{', '.join(words[:-1])} or {words[-1]}"
        self._fault("literal_error", name, f"Input should be {listed}")
        return None

    def texts(self, name: str, *, count_max: int) -> list[str]:
        """One to `count_max` texts, none empty, counted before duplicates are dropped."""
        values = self._values.get(name, [])
        if not values:
            self._fault("missing", name, "Field required")
        elif len(values) > count_max:
            bound = (
                f"List should have at most {count_max} items after validation, not {len(values)}"
            )
            self._fault("too_long", name, bound)
        else:
            for index, value in enumerate(values):
                if not value:
                    bound = "String should have at least 1 character"
                    self._fault("string_too_short", name, bound, index)
        return list(dict.fromkeys(values))

    def finish(self) -> None:
        """Raises `Refused` (`schema_faults`) with every fault so far."""
        if self._faults:
            raise refused("schema_faults", detail=self._faults)

    def _fault(self, kind: str, name: str, message: str, *where: int) -> None:
        self._faults.append({"type": kind, "loc": ["query", name, *where], "msg": message})


def check_characters(name: str, *values: str) -> None:
    """Raises `Refused` (`invalid_input`) for control characters and invalid UTF-8."""
    if any(_REFUSED_CHARACTERS.search(value) for value in values):
        raise refused("invalid_input", field=name)


def is_text(value: str) -> bool:
    """Tells whether it was valid UTF-8."""
    return not _SURROGATES.search(value)


def _decode(text: str) -> str:
    text = text.replace("+", " ")
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape") if "%" in text else text
