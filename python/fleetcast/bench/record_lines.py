"""Records of a file of JSON lines, or of line protocol, in the order of the file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.engine import Plane, TextFormat, parse_time, time_ns
from fleetcast.errors import OperatorError, Refused
from fleetcast.transfer.batches import JsonLines, ProtocolLines
from fleetcast.transfer.opening import opened
from fleetcast.transfer.pieces import Piece, pieces
from fleetcast.transfer.refusals import faults, reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleetcast.transfer.batches import Lines

_FIRST_NS = parse_time("2000-01-01T00:00:00Z")
_NOW_NS = parse_time("2262-01-01T00:00:00Z")
"""The time of a line without a time, and later than any other."""
_NAMES_MAX = 10_000  # of a record


class FileRecord(NamedTuple):
    """A record as the engine reads it."""

    measurement: str
    time_ns: int
    tags: dict[str, str]
    numbers: dict[str, float]
    other_fields: int
    """Number of fields that are no numbers."""


def records(path: Path) -> Iterator[FileRecord | None]:
    """Yields the records of a file, of which a few megabytes are in memory at a time.

    A file whose first character is `{` has JSON lines in the form of an import, any other has line
    protocol with times in nanoseconds. A record that the engine rejects is `None`. Raises
    `OSError`. Raises `OperatorError` with the line of a record that cannot be read.
    """
    text_format = TextFormat.lines("ns")
    batch_type: type[Lines] = ProtocolLines
    # The whole path, because `opened` reads standard input for the name `-`.
    with opened(str(path.absolute()), lambda _: None) as file:
        for piece in pieces(file):
            if piece.problem is not None:
                raise _fault(path, piece.first, piece.problem)
            if piece.first == 1 and piece.text.lstrip().startswith(b"{"):
                text_format, batch_type = TextFormat.json(), JsonLines
            found, open_at = text_format.records(piece.text, piece.end)
            if open_at is not None and not piece.is_last:
                piece.shorten(open_at)
            for start, end, line in found:
                if start >= piece.end:
                    break
                text, number = piece.text[start:end], piece.first + line
                try:
                    record = _read(text, text_format)
                except Refused as refusal:
                    batch = batch_type(Piece(number, text, len(text), is_last=True), text_format)
                    problem = faults(refusal, batch).get(0) or reason(refusal)
                    raise _fault(path, number, problem) from None
                if record is not None and record.time_ns == _NOW_NS:
                    raise _fault(path, number, "has no time")
                yield record


def _read(text: bytes, text_format: TextFormat) -> FileRecord | None:
    """Reads one record, by a store for it alone: a scan of many would sort them.

    A record without a time has `_NOW_NS`. Raises `Refused`.
    """
    plane = Plane.in_memory("bench")
    result = plane.write_text(
        text, text_format, now_ns=_NOW_NS, tags_max=_NAMES_MAX, fields_max=_NAMES_MAX
    )
    if result.rejected_indices:
        return None
    (batch,) = plane.scan(_FIRST_NS, _NOW_NS + 1)
    record = json.loads(batch.json_lines())
    at_ns, fields = time_ns(record["time"]), record["fields"]
    numbers = {name: value for name, value in fields.items() if isinstance(value, float)}
    others = len(fields) - len(numbers)
    return FileRecord(record["measurement"], at_ns, record["tags"], numbers, others)


def _fault(path: Path, line: int, problem: str) -> OperatorError:
    return OperatorError(f"{path}, line {line}: {problem}")
