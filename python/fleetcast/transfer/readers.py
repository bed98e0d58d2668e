"""Readers of line formats: pieces of a file, and batches out of pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fleetcast.engine import TextFormat
from fleetcast.transfer.batches import JsonLines, ProtocolLines
from fleetcast.transfer.opening import opened
from fleetcast.transfer.pieces import pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    from fleetcast.transfer.batches import Lines
    from fleetcast.transfer.pieces import Piece
    from fleetcast.transfer.tables import RecordBatch

    Precision = Literal["ns", "us", "ms", "s"]


class Reader(Protocol):
    """A file, read span by span: some of its lines or rows, numbered from 1.

    A span is a `Piece` or has its attributes: `first`, `last`, `problem`, `until` and `after`.
    """

    def spans(self) -> Iterator[Any]:
        """Yields the whole file in order. Raises `OSError`, `OperatorError`."""

    def batch(self, span: Any) -> RecordBatch:  # noqa: ANN401 - the reader's type
        """Returns the records of a span."""


class LineReader:
    """Lines of a text, of which each is a record of the `form`."""

    def __init__(
        self, name: str, advance: Callable[[int], object], form: TextFormat, batch: type[Lines]
    ) -> None:
        self._name = name
        self._advance = advance
        self._form = form
        self._batch = batch

    def spans(self) -> Iterator[Piece]:
        """See `Reader`."""
        with opened(self._name, self._advance) as file:
            yield from pieces(file)

    def batch(self, span: Piece) -> Lines:
        """See `Reader`."""
        return self._batch(span, self._form)


def json_reader(name: str, advance: Callable[[int], object]) -> LineReader:
    """Reads JSON lines."""
    return LineReader(name, advance, TextFormat.json(), JsonLines)


def protocol_reader(
    name: str, advance: Callable[[int], object], precision: Precision
) -> LineReader:
    """Reads InfluxDB's line protocol, whose strings may contain ends of lines."""
    return LineReader(name, advance, TextFormat.lines(precision), ProtocolLines)
