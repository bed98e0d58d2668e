"""Readers of line formats: pieces of a file, and batches out of pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from fleetcast.engine import TextFormat
from fleetcast.transfer.batches import JsonLines, ProtocolLines
from fleetcast.transfer.opening import opened
from fleetcast.transfer.pieces import pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    from fleetcast.transfer.batches import Lines
    from fleetcast.transfer.csv_reader import CsvReader
    from fleetcast.transfer.parquet_reader import ParquetReader
    from fleetcast.transfer.pieces import Piece

    Precision = Literal["ns", "us", "ms", "s"]

Reader: TypeAlias = "LineReader | CsvReader | ParquetReader"
"""A file, read span by span: some of its lines or rows, numbered from 1."""


class LineReader:
    """Lines of a text, of which each is a record of the `form`. A span is some of its lines."""

    def __init__(
        self, name: str, advance: Callable[[int], object], form: TextFormat, batch: type[Lines]
    ) -> None:
        self._name = name
        self._advance = advance
        self._form = form
        self._batch = batch

    def spans(self) -> Iterator[Piece]:
        """Yields the whole file in order, span by span. Raises `OSError`, `OperatorError`."""
        with opened(self._name, self._advance) as file:
            yield from pieces(file)

    def batch(self, span: Piece) -> Lines:
        """Returns the records of a span."""
        return self._batch(span, self._form)


def json_reader(name: str, advance: Callable[[int], object]) -> LineReader:
    """Reads JSON lines."""
    return LineReader(name, advance, TextFormat.json(), JsonLines)


def protocol_reader(
    name: str, advance: Callable[[int], object], precision: Precision
) -> LineReader:
    """Reads InfluxDB's line protocol, whose strings may contain ends of lines."""
    return LineReader(name, advance, TextFormat.lines(precision), ProtocolLines)
