"""Records of a file of JSON lines, or of line protocol, in the order of the file."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from fleetcast.engine import TextFormat, time_ns
from fleetcast.errors import OperatorError
from fleetcast.transfer.opening import opened
from fleetcast.transfer.pieces import pieces

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_KEY = r"(?:\\.|[^,=\s\\])+"
_TAG = re.compile(rf",({_KEY})=({_KEY})", re.DOTALL)
_SERIES = re.compile(rf"((?:\\.|[^,\s\\])+)((?:{_TAG.pattern})*)", re.DOTALL)
_FIELD = re.compile(rf"({_KEY})=(\"(?:\\.|[^\"\\])*\"|[^,\s\"]+)", re.DOTALL)
_LINE = re.compile(
    rf"((?:\\.|[^\s\\])+) +({_FIELD.pattern}(?:,{_FIELD.pattern})*) +(-?\d{{1,19}})\s*", re.DOTALL
)
_NUMBER = re.compile(r"([-+]?\d{1,30})[iu]|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_SPECIAL = re.compile(r"\\([ ,=])")
_WORDS = {*("t", "T", "true", "True", "TRUE"), *("f", "F", "false", "False", "FALSE")}


class FileRecord(NamedTuple):
    """A record as its file has it."""

    measurement: str
    time_ns: int
    tags: dict[str, str]
    numbers: dict[str, float]
    other_fields: int
    """Number of fields that are no numbers."""


def records(path: Path) -> Iterator[FileRecord]:
    """Yields the records of a file, of which a few megabytes are in memory at a time.

    A file whose first character is `{` has JSON lines in the form of an import, any other has line
    protocol with times in nanoseconds. Raises `OSError`. Raises `OperatorError` with the line of a
    record that cannot be read.
    """
    text_format, parsed = TextFormat.lines("ns"), _of_line
    # The whole path, because `opened` reads standard input for the name `-`.
    with opened(str(path.absolute()), lambda _: None) as file:
        for piece in pieces(file):
            if piece.problem is not None:
                raise _fault(path, piece.first, piece.problem)
            if piece.first == 1 and piece.text.lstrip().startswith(b"{"):
                text_format, parsed = TextFormat.json(), _of_json
            found, open_at = text_format.records(piece.text, piece.end)
            if open_at is not None and not piece.is_last:
                piece.shorten(open_at)
            for start, end, line in found:
                if start >= piece.end:
                    break
                try:
                    record = parsed(piece.text[start:end].decode())
                except UnicodeDecodeError:
                    raise _fault(path, piece.first + line, "is not UTF-8") from None
                except ValueError as error:
                    raise _fault(path, piece.first + line, str(error)) from None
                yield record


def _refuse(problem: str) -> NoReturn:
    raise ValueError(problem)


def _fault(path: Path, line: int, problem: str) -> OperatorError:
    return OperatorError(f"{path}, line {line}: {problem}")


def _of_json(text: str) -> FileRecord:
    """Reads one JSON object. Raises `ValueError`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        _refuse("is not JSON")
    match value:
        case {"measurement": str(measurement), "time": str() | int() as time, **rest}:
            tags, fields = rest.get("tags", {}), rest.get("fields", {})
        case _:
            _refuse("is no record with a measurement and a time")
    if not isinstance(tags, dict) or not all(isinstance(each, str) for each in tags.values()):
        _refuse("its tags are not an object of texts")
    if not isinstance(fields, dict):
        _refuse("its fields are not an object")
    numbers = {
        name: value
        for name, value in fields.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return _checked(measurement, tags, _time_of(time), numbers, len(fields) - len(numbers))


def _of_line(text: str) -> FileRecord:
    """Reads one line of line protocol. Raises `ValueError`."""
    parts = _LINE.fullmatch(text)
    series = parts and _series(parts[1])
    if not parts or not series:
        _refuse("is not line protocol with a time in nanoseconds")
    fields = _FIELD.findall(parts[2])
    numbers = {
        _plain(name): _number(value)
        for name, value in fields
        if value[0] != '"' and value not in _WORDS
    }
    return _checked(*series, int(parts[parts.re.groups]), numbers, len(fields) - len(numbers))


@lru_cache
def _series(text: str) -> tuple[str, dict[str, str]] | None:
    """Returns measurement and tags, which lines of one series share."""
    parts = _SERIES.fullmatch(text)
    if parts is None:
        return None
    tags = {_plain(name): _plain(value) for name, value in _TAG.findall(parts[2])}
    return _plain(parts[1]), tags


def _checked(
    measurement: str, tags: dict[str, str], time: int, numbers: dict[str, float], others: int
) -> FileRecord:
    try:
        is_finite = all(math.isfinite(value) for value in numbers.values())
    except OverflowError:
        is_finite = False
    if not is_finite:
        _refuse("has a number that is not finite")
    return FileRecord(measurement, time, tags, numbers, others)


def _time_of(time: str | int) -> int:
    try:
        return time_ns(time)
    except (TypeError, ValueError):
        _refuse("its time is no time")


def _number(text: str) -> float:
    found = _NUMBER.fullmatch(text)
    if found is None:
        _refuse("has a value that is no number, text or boolean")
    return float(text) if found[1] is None else int(found[1])


def _plain(name: str) -> str:
    return _SPECIAL.sub(r"\1", name)
