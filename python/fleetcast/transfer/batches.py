"""Batches on their way into a data plane, and their parts after a refusal."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Protocol, Self, TypedDict, Unpack

from fleetcast.transfer.pieces import counted_unescaped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Literal

    from fleetcast.engine import Plane, WriteResult
    from fleetcast.transfer.pieces import Piece

    Precision = Literal["ns", "us", "ms", "s"]


_FIELD = re.compile(rb"(?<!\\) [^ =]*=")


class Rejected(Exception):
    """Records that may not be sent: `args` is their reasons by index."""


class WriteOptions(TypedDict):
    """ColumnOptions that all writes of a plane have in common."""

    cursor: tuple[bytes, bytes] | None
    tags_max: int
    fields_max: int
    tenant_fields_max: int
    tenant_series_max: int


class RecordBatch(Protocol):
    """Some records of a file, in order."""

    first: int
    """Index that the engine gives the first of them."""
    last: int
    """Line up to which they take the file."""

    def __len__(self) -> int:
        """Number of records."""

    def write(self, plane: Plane, **options: Unpack[WriteOptions]) -> WriteResult:
        """Writes all of them as one batch. Raises `Refused`, `Rejected`, `StoreError`."""

    def pieces(self) -> Iterator[RecordBatch]:
        """Batches that may be written at once."""

    def part(self, start: int, stop: int) -> RecordBatch:
        """Records `start` to `stop`, exclusive. The last part ends where this batch does."""

    def without(self, indices: Collection[int]) -> RecordBatch:
        """The other records."""

    def line(self, index: int) -> int:
        """Line on which a record begins."""

    def text(self, index: int) -> str:
        """A record as the file has it."""

    def has_fields(self, index: int) -> bool:
        """False where a record lacks them, the one other reason to reject it being its time."""


class Lines(ABC):
    """Records in lines of a text, which is taken apart when something is the matter with it."""

    def __init__(self, piece: Piece) -> None:
        self.first = 0
        self.last = piece.last
        self._piece: Piece | None = piece
        self._records: list[bytes] = []
        self._numbers: list[int] = []

    @abstractmethod
    def write(self, plane: Plane, **options: Unpack[WriteOptions]) -> WriteResult:
        """See `RecordBatch`."""

    @abstractmethod
    def has_fields(self, index: int) -> bool:
        """See `RecordBatch`."""

    @abstractmethod
    def _take_apart(self, piece: Piece) -> Iterator[tuple[int, bytes]]:
        """Number of the first line, and lines, of each record."""

    def __len__(self) -> int:
        return len(self._single())

    def pieces(self) -> Iterator[Self]:
        """See `RecordBatch`."""
        yield self

    def part(self, start: int, stop: int) -> Self:
        """See `RecordBatch`."""
        self._single()
        part = self._with(range(start, min(stop, len(self))))
        part.last = self.last if stop >= len(self) else self._numbers[stop] - 1
        return part

    def without(self, indices: Collection[int]) -> Self:
        """See `RecordBatch`."""
        return self._with([index for index in range(len(self)) if index not in indices])

    def line(self, index: int) -> int:
        """See `RecordBatch`."""
        self._single()
        return self._numbers[index]

    def text(self, index: int) -> str:
        """See `RecordBatch`."""
        return self._single()[index].decode(errors="replace")

    def _single(self) -> list[bytes]:
        """The records one by one."""
        if self._piece is not None:
            parts = list(self._take_apart(self._piece))
            self._numbers = [number for number, _ in parts]
            self._records = [record for _, record in parts]
            self._piece = None
        return self._records

    def _with(self, indices: Sequence[int]) -> Self:
        part = copy(self)
        part._records = [self._records[index] for index in indices]  # noqa: SLF001  its own kind
        part._numbers = [self._numbers[index] for index in indices]  # noqa: SLF001
        return part


class JsonLines(Lines):
    """Records that are a JSON object on a line each."""

    def write(self, plane: Plane, **options: Unpack[WriteOptions]) -> WriteResult:
        """See `RecordBatch`. Lines are joined, and parsed here only where one may be no object."""
        joined = None if self._piece is None else _joined(self._piece)
        if joined is None:
            faults = dict(self._faults())
            if faults:
                raise Rejected(faults)
            joined = b",".join(self._records), len(self._records)
        text, count = joined
        return plane.write_json(b"".join((b"[", text, b"]")), batch_records_max=count, **options)

    def has_fields(self, index: int) -> bool:
        """See `RecordBatch`."""
        return bool(json.loads(self._single()[index]).get("fields"))

    def _faults(self) -> Iterator[tuple[int, str]]:
        for index, record in enumerate(self._single()):
            try:
                value = json.loads(record)
            except (ValueError, RecursionError):
                yield index, "is not JSON"
            else:
                if not isinstance(value, dict):
                    yield index, "is not a JSON object"

    def _take_apart(self, piece: Piece) -> Iterator[tuple[int, bytes]]:
        for number, line in enumerate(piece.text.split(b"\n"), piece.first):
            if text := line.strip():
                yield number, text


class ProtocolLines(Lines):
    """Records in InfluxDB's line protocol."""

    def __init__(self, piece: Piece, precision: Precision) -> None:
        super().__init__(piece)
        self._precision = precision

    def write(self, plane: Plane, **options: Unpack[WriteOptions]) -> WriteResult:
        """See `RecordBatch`."""
        piece = self._piece
        body, count = (
            (b"\n".join(self._records), len(self._records))
            if piece is None
            else (piece.text, piece.lines)
        )
        return plane.write_lines(
            body, precision=self._precision, batch_records_max=count, **options
        )

    def has_fields(self, index: int) -> bool:
        """See `RecordBatch`."""
        return _FIELD.search(self._single()[index]) is not None

    def _take_apart(self, piece: Piece) -> Iterator[tuple[int, bytes]]:
        """Lines whose quotes are not closed go on; empty ones and comments hold no record."""
        began, record = piece.first, b""
        for number, line in enumerate(piece.text.splitlines(keepends=True), piece.first):
            began = began if record else number
            record += line
            if counted_unescaped(record, 0, len(record)) % 2 == 0:
                if record.strip() and not record.lstrip().startswith(b"#"):
                    yield began, record.rstrip(b"\r\n")
                record = b""
        if record:
            yield began, record.rstrip(b"\r\n")


def _joined(piece: Piece) -> tuple[bytes, int] | None:
    """The inside of the array that the lines make, `None` unless each is one object at a glance."""
    text = piece.text.rstrip(b"\r\n")
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    if text[:1] != b"{" or text[-1:] != b"}" or text.count(b"}\n{") != text.count(b"\n"):
        return None
    return text.replace(b"\n", b","), piece.lines
