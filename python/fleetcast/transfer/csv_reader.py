"""Reader of CSV, in pieces of its text."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError
from fleetcast.transfer.csv_rows import CsvHeader, CsvRows
from fleetcast.transfer.mapping import assign
from fleetcast.transfer.opening import opened
from fleetcast.transfer.pieces import Piece, pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleetcast.engine import FieldKind
    from fleetcast.transfer.mapping import ColumnOptions

    Advance = Callable[[int], object]

_BOM = b"\xef\xbb\xbf"


class CsvReader:
    """Comma-separated values below a header."""

    def __init__(
        self,
        name: str,
        advance: Advance,
        options: ColumnOptions,
        known: Callable[[str | None], dict[str, FieldKind]],
    ) -> None:
        """Reads `name`. `known` returns types of the stored fields of a measurement, or of all."""
        self._name = name
        self._advance = advance
        self._options = options
        self._known = known
        self._header: CsvHeader | None = None

    def spans(self) -> Iterator[Piece]:
        """See `LineReader`. The header must be in the first piece, and is not yielded."""
        with opened(self._name, self._advance) as file:
            for piece in pieces(file):
                if self._header is not None:
                    yield piece
                    continue
                lines = self._read_header(piece)
                rest = piece.after(lines)
                if rest.lines:
                    yield rest
        if self._header is None:
            assign(self._name, [], self._options)  # raises the error about the missing columns

    def batch(self, span: Piece) -> CsvRows:
        """See `LineReader`."""
        assert self._header is not None  # noqa: S101 - `spans` ran before
        return CsvRows(span, self._header)

    def _read_header(self, piece: Piece) -> int:
        """Reads the header and returns the number of its lines. Raises `OperatorError`."""
        text = piece.text[: piece.end].removeprefix(_BOM)
        rows = csv.reader(line.decode(errors="surrogateescape") for line in io.BytesIO(text))
        try:
            names = next(rows, [])
        except csv.Error as error:
            message = (
                f"{self._name}: its header cannot be read: line {rows.line_num} has a name with a"
                f" carriage return in it, or of more than {csv.field_size_limit():,} characters"
            )
            raise OperatorError(message) from error
        columns = assign(self._name, names, self._options)
        self._header = CsvHeader(names, columns, self._known(columns.measurement))
        return rows.line_num
