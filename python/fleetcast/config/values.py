"""Conversion of TOML values and of bare words to the types of settings."""

from __future__ import annotations

import math
import tomllib
from typing import TYPE_CHECKING

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


def fit(value: object, kind: object) -> object:
    """Returns the value in the type of its setting. Raises `Unfit`."""
    reader = _READERS.get(kind)
    assert reader is not None, f"no reader for settings of type {kind}"  # noqa: S101 - a mistake of ours
    return reader(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        message = "must be a string"
        raise Unfit(message)
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        message = "must be true or false"
        raise Unfit(message)
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        message = "must be a whole number"
        raise Unfit(message)
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        message = "must be a number"
        raise Unfit(message)
    return float(value)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        message = 'must be a list of strings, such as ["a", "b"]'
        raise Unfit(message)
    return tuple(value)


_READERS: dict[object, Callable[[object], object]] = {
    str: _text,
    bool: _flag,
    bool | None: _flag,
    int: _whole,
    float: _number,
    tuple[str, ...]: _texts,
}
