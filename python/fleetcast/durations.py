"""Durations as people write them: a whole number and `s`, `m`, `h`, `d` or `w`."""

from __future__ import annotations

import re

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_GRAMMAR = re.compile(r"([0-9]{1,12})([smhdw])")

DURATION_SECONDS_MAX = 36_500 * 86_400
"""A hundred years. The bound keeps every instant computed from a duration inside the calendar."""


def parse_duration(text: str) -> int:
    """Returns the seconds of a duration. Example: `90d` is 7,776,000 s.

    Raises `ValueError` with a message that quotes the text.
    """
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        message = f"{text!r} is not a duration: a whole number and s, m, h, d or w, such as 90d"
        raise ValueError(message)
    seconds = int(match[1]) * _SECONDS[match[2]]
    if seconds > DURATION_SECONDS_MAX:
        message = f"{text!r} is longer than a hundred years"
        raise ValueError(message)
    return seconds


def parse_years(text: str) -> int:
    """Returns the seconds of a duration that may be in years of 365 days. Example: `5y`.

    Raises `ValueError` as `parse_duration` does.
    """
    years = re.fullmatch(r"([0-9]{1,12})y", text)
    return parse_duration(f"{int(years[1]) * 365}d" if years else text)


def format_duration(seconds: int) -> str:
    """Returns the shortest text that `parse_duration` reads back. Example: 5,400 s become `90m`."""
    for unit in ("w", "d", "h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds}s"
