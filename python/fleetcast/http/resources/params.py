"""Query parameters: decoded, checked, and every problem of a request listed together.

Faults are items of a 422 `detail` list: `{"type", "loc", "msg"}`. Example: `?horizon_minutes=x`
gives an item with `"type":"int_parsing"` and `"loc":["query","horizon_minutes"]`. Bytes that are
not UTF-8 are kept as lone surrogates, which occur in no valid text.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from fleetcast.errors import refused

_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")  # `int` refuses more than 4,300 digits
_NOT_WHOLE = "Input should be a valid integer, unable to parse string as an integer"


class Query:
    """The parameters of one request. Call `finish` after the last read of a parameter."""

    def __init__(self, query_string: str) -> None:
        self._values: dict[str, list[str]] = {}
        self._faults: list[dict[str, object]] = []
        for pair in query_string.split("&"):
            if pair:
                name, _, value = pair.partition("=")
                self._values.setdefault(_decode(name), []).append(_decode(value))

    def given(self, name: str) -> list[str]:
        """Every value of a parameter, unchecked."""
        return self._values.get(name, [])

    def text(self, name: str) -> str | None:
        """Returns the value of a parameter that may be given once."""
        values = self._values.get(name, [])
        if len(values) > 1:
            self.fault("multiple_values", name, "Input should be given once")
            return None
        return values[0] if values else None

    def whole(self, name: str) -> int | None:
        """Returns the value of a parameter as a whole number."""
        text = self.text(name)
        if text is None:
            return None
        if _WHOLE.fullmatch(text) is None:
            self.fault("int_parsing", name, _NOT_WHOLE)
            return None
        return int(text)

    def finish(self) -> None:
        """Raises `Refused` (`schema_faults`) with every fault so far."""
        if self._faults:
            raise refused("schema_faults", detail=self._faults)

    def fault(self, kind: str, name: str, message: str) -> None:
        """Notes a fault of a parameter, for `finish`."""
        self._faults.append({"type": kind, "loc": ["query", name], "msg": message})


def _decode(text: str) -> str:
    text = text.replace("+", " ")
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape") if "%" in text else text
