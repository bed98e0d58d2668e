"""Batches on their way into a data plane, and their parts after a refusal."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any, Self, Unpack

from fleetcast.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from fleetcast.engine import Plane, RecordBounds, TextFormat, WriteResult
    from fleetcast.transfer.pieces import Piece


_FIELD = re.compile(rb"(?<!\\) [^ =]*=")
_NO_RECORD = {"json_invalid": "is not JSON", "model_attributes_type": "is not a JSON object"}


Cursor = tuple[bytes, int]
"""Key of an import, and the position of its file, to which the number of a line is added."""


class Rejected(Exception):
    """Raised for records that may not be sent. `args` has the reasons by index."""


class Lines(ABC):
    """Records in lines of a text. The text is split only if the engine refuses it."""

    def __init__(self, piece: Piece, form: TextFormat) -> None:
        self.first = 0
        """Index that the engine gives the first record."""
        self._piece = piece
        self._form = form
        self._records: list[bytes] | None = None
        self._numbers: list[int] = []
        self._last: int | None = None

    @abstractmethod
    def has_fields(self, index: int) -> bool:
        """Returns true if a record has fields. The time is then the reason to reject the record."""

    @property
    def last(self) -> int:
        """Line up to which these records take the file."""
        return self._piece.last if self._last is None else self._last

    def __len__(self) -> int:
        return len(self._single())

    def write(
        self, plane: Plane, cursor: Cursor | None, **options: Unpack[RecordBounds]
    ) -> WriteResult:
        """Writes all records as one batch. Raises `Refused`, `Rejected`, `StoreError`.

        A text that ends within a record is cut before that record.
        """
        if self._records is not None:
            body = b"\n".join(self._records)
            at = cursor and (cursor[0], (cursor[1] + self.last).to_bytes(8, "little"))
            return plane.write_text(body, self._form, cursor=at, **options)
        piece = self._piece
        try:
            before = cursor and (cursor[0], cursor[1] + piece.first - 1)
            result = plane.write_text(
                piece.text, self._form, end=piece.end, cursor=before, **options
            )
        except Refused:
            _, open_at = self._form.records(piece.text, piece.end)
            if piece.is_last or open_at is None:
                raise
            piece.shorten(open_at)
            if open_at == 0:
                raise Rejected({}) from None  # there is no whole record
            return self.write(plane, cursor, **options)
        piece.counted = result.line_count
        return result

    def pieces(self) -> Iterator[Self]:
        """Yields batches that may each be written at once."""
        yield self

    def part(self, start: int, stop: int) -> Self:
        """Returns records `start` to `stop`, exclusive. The last part ends with this batch."""
        self._single()
        part = self._with(range(start, min(stop, len(self))))
        part._last = self.last if stop >= len(self) else self._numbers[stop] - 1  # noqa: SLF001 - same class
        return part

    def without(self, indices: Collection[int]) -> Self:
        """Returns the records except `indices`."""
        return self._with([index for index in range(len(self)) if index not in indices])

    def reason(self, index: int, fault: Mapping[str, Any]) -> str:  # noqa: ARG002 - see `CsvRows`
        """Returns the reason to reject a record in which the engine found `fault`."""
        return words_of(fault)

    def line(self, index: int) -> int:
        """Returns the line on which a record begins."""
        self._single()
        return self._numbers[index]

    def text(self, index: int) -> str:
        """Returns a record as the file has it."""
        return self._single()[index].decode(errors="replace")

    def _single(self) -> list[bytes]:
        """Splits the text into records, once."""
        if self._records is None:
            piece = self._piece
            found, _ = self._form.records(piece.text, piece.end)
            self._records = [piece.text[start:end] for start, end, _ in found]
            self._numbers = [piece.first + line for _, _, line in found]
        return self._records

    def _with(self, indices: Sequence[int]) -> Self:
        part, records = copy(self), self._single()
        part._records = [records[index] for index in indices]  # noqa: SLF001 - the same class
        part._numbers = [self._numbers[index] for index in indices]  # noqa: SLF001 - the same class
        return part


def words_of(fault: Mapping[str, Any]) -> str:
    """Returns a fault in words, after its place in the record if it has a place."""
    path = ".".join(str(part) for part in fault["loc"][2:])
    return f"{path}: {fault['msg']}" if path else str(fault["msg"])


class JsonLines(Lines):
    """Records as JSON objects, one on each line."""

    def reason(self, index: int, fault: Mapping[str, Any]) -> str:
        """See `Lines`."""
        return _NO_RECORD.get(fault["type"]) or super().reason(index, fault)

    def has_fields(self, index: int) -> bool:
        """See `Lines`."""
        return bool(json.loads(self._single()[index]).get("fields"))


class ProtocolLines(Lines):
    """Records in InfluxDB's line protocol."""

    def has_fields(self, index: int) -> bool:
        """See `Lines`."""
        return _FIELD.search(self._single()[index]) is not None
