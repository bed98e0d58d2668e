"""Records out of files, each with the line it begins on.

A reader gives the record as JSON text, or the problem with the line. Numbers keep the digits that
the file has; the engine alone decides what a record may hold.
"""

from __future__ import annotations

import csv
import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.config.sections import Limits
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO, TextIO

LINE_BYTES_MAX = Limits.body_bytes_max  # as long as a record over HTTP by default
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FLAGS = {"true": True, "false": False}


class Line(NamedTuple):
    """A record as JSON text, or the problem with its line."""

    number: int
    record: bytes
    problem: str | None = None


@dataclass(frozen=True)
class CsvColumns:
    """Roles of the columns of a CSV file: all others are fields."""

    measurement: str | None
    tags: tuple[str, ...]


def read_jsonl(path: Path, advance: Callable[[int], None]) -> Iterator[Line]:
    """One record object a line; `advance` is called with the bytes read. Raises `OSError`."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_BYTES_MAX + 1):
            number += 1
            size = len(line)
            too_long = size > LINE_BYTES_MAX and not line.endswith(b"\n")
            if too_long:
                size += _skip_line(file)
            advance(size)
            text = line.strip()
            if too_long:
                yield Line(number, b"", f"is longer than {LINE_BYTES_MAX} bytes")
            elif text:
                yield Line(number, text, _json_problem(text))


def read_csv(path: Path, columns: CsvColumns, advance: Callable[[int], None]) -> Iterator[Line]:
    """One record a row below a header with `time`. An empty cell is no tag and no field.

    Raises `OSError`, and `OperatorError` for a header without the columns it needs.
    """
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        rows = csv.reader(_counted(file, advance))
        header = next(rows, [])
        _check_header(path, header, columns)
        while True:
            number = rows.line_num + 1
            try:
                row = next(rows, None)
            except csv.Error as error:
                yield Line(number, b"", str(error))
                continue
            if row is None:
                return
            if not row:
                continue
            try:
                yield Line(number, _csv_record(header, row, columns))
            except ValueError as error:
                yield Line(number, b"", str(error))


def _skip_line(file: BinaryIO) -> int:
    """Reads on to the end of the line and gives the bytes skipped."""
    skipped = 0
    while part := file.readline(LINE_BYTES_MAX):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped


def _json_problem(text: bytes) -> str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "is not JSON"
    return None if isinstance(value, dict) else "is not a JSON object"


def _counted(file: TextIO, advance: Callable[[int], None]) -> Iterator[str]:
    for line in file:
        advance(len(line.encode(errors="surrogateescape")))
        yield line


def _check_header(path: Path, header: list[str], columns: CsvColumns) -> None:
    needed = ["time", *([] if columns.measurement else ["measurement"])]
    missing = [name for name in needed if name not in header]
    if missing:
        hint = " (or give --measurement)" if "measurement" in missing else ""
        message = f"{path} has no column {missing[0]}{hint}; it has {', '.join(header) or 'none'}"
        raise OperatorError(message)
    if len(set(header)) != len(header):
        message = f"{path} has two columns of one name"
        raise OperatorError(message)


def _csv_record(header: list[str], row: list[str], columns: CsvColumns) -> bytes:
    if len(row) != len(header):
        message = f"has {len(row)} cells, the header has {len(header)}"
        raise ValueError(message)
    cells = {name: cell for name, cell in zip(header, row, strict=True) if cell}
    measurement = columns.measurement or cells.get("measurement", "")
    special = {"time"} if columns.measurement else {"time", "measurement"}
    tags = {name: cell for name, cell in cells.items() if name in columns.tags}
    fields = {
        name: _field(name, cell)
        for name, cell in cells.items()
        if name not in special and name not in columns.tags and cell.lower() != "nan"
    }
    record = {
        "measurement": measurement,
        "time": cells.get("time", ""),
        "tags": tags,
        "fields": fields,
    }
    try:
        return json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        message = "is not UTF-8"
        raise ValueError(message) from None


def _field(name: str, cell: str) -> float | bool | str:
    if _NUMBER.fullmatch(cell):
        number = float(cell)
        if math.isinf(number):
            message = f"has a number out of range in {name}"
            raise ValueError(message)
        return number
    return _FLAGS.get(cell.lower(), cell)
