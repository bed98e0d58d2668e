"""Conversion of TOML values and of bare words to the types of settings."""

from __future__ import annotations

import math
import tomllib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Unfit(Exception):
    """A value that its setting cannot hold; the message continues the setting's name."""


def read_word(text: str) -> object:
    """Returns a text as a TOML value, or unchanged if it is not a TOML value.

    Example: `4` is a number, `0.0.0.0:80` stays a text.
    """
    if "\n" in text:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # also raised by a number of thousands of digits
        return text


def fit(value: Any, kind: object) -> object:  # noqa: ANN401 - TOML has values of any type
    """Returns the value in the type of its setting. Raises `Unfit`."""
    found = _KINDS.get(kind)
    assert found is not None, f"no settings of type {kind}"  # noqa: S101 - a mistake of ours
    fits, wanted = found
    if not fits(value):
        message = f"must be {wanted}"
        raise Unfit(message)
    return tuple(value) if isinstance(value, list) else float(value) if kind is float else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_FLAG = (lambda value: isinstance(value, bool)), "true or false"
_KINDS: dict[object, tuple[Callable[[Any], bool], str]] = {
    str: (lambda value: isinstance(value, str), "a string"),
    bool: _FLAG,
    bool | None: _FLAG,
    int: (lambda value: type(value) is int, "a whole number"),
    float: (_is_number, "a number"),
    tuple[str, ...]: (_are_texts, 'a list of strings, such as ["a", "b"]'),
}
