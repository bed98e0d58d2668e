"""Rows of CSV on their way into a data plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleetcast.engine import TextFormat
from fleetcast.transfer.batches import Lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.engine import FieldKind
    from fleetcast.transfer.mapping import Columns
    from fleetcast.transfer.pieces import Piece


class CsvHeader:
    """The columns of a file. `known` has the types of fields, by name."""

    def __init__(
        self, names: Sequence[str], columns: Columns, known: Mapping[str, FieldKind]
    ) -> None:
        self.names = names
        self.form = _form(names, columns, known)
        self._columns = columns

    def reason(self, cells: Sequence[str], fault: Mapping[str, Any]) -> str | None:
        """Reason to reject a row with a fault in one of its cells; `None` for another fault."""
        kind, (_, _, *path) = fault["type"], fault["loc"]
        if kind == "model_attributes_type":
            return f"has {len(cells)} cells, the header has {len(self.names)}"
        if path[:1] != ["cell"]:
            return None
        index = int(path[1])
        column = self.names[index]
        name, _ = self._columns.fields.get(column, (column, None))
        if kind == "finite_number":
            return f"has a number out of range in {name}"
        if kind == "int_parsing":
            return f"has no whole number in {name}: {cells[index]!r}"
        word = "true or false" if self.form.kinds()[index] == "bool" else "number"
        return f"has no {word} in {name}: {cells[index]!r}"

    def has_fields(self, cells: Sequence[str]) -> bool:
        """Returns true if a row that the engine could split has a field."""
        found = zip(self.names, cells, self.form.kinds(), strict=True)
        return any(
            cell and not (kind == "float" and cell.lower() == "nan")
            for name, cell, kind in found
            if name in self._columns.fields
        )


class CsvRows(Lines):
    """Rows below a header."""

    def __init__(self, piece: Piece, header: CsvHeader) -> None:
        super().__init__(piece, header.form)
        self._header = header

    def reason(self, index: int, fault: Mapping[str, Any]) -> str:
        """See `Lines`."""
        try:
            cells = TextFormat.cells(self._single()[index].decode())
        except UnicodeDecodeError:
            return "is not UTF-8"
        if cells is None:
            return "has quotes that are not closed, or closed within a cell"
        return self._header.reason(cells, fault) or super().reason(index, fault)

    def has_fields(self, index: int) -> bool:
        """See `Lines`."""
        return self._header.has_fields(TextFormat.cells(self._single()[index].decode()) or [])


def _form(names: Sequence[str], columns: Columns, known: Mapping[str, FieldKind]) -> TextFormat:
    """Returns the format of a file with these columns."""
    tags: dict[str, list[str]] = {}
    for tag, column in columns.tags.items():
        tags.setdefault(column, []).append(tag)
    fields = {
        column: (name, kind or known.get(name)) for column, (name, kind) in columns.fields.items()
    }
    has_measurements = columns.measurement is None
    return TextFormat.csv(
        [(tags.get(name, []), fields.get(name)) for name in names],
        time=names.index(columns.time),
        time_unit=columns.time_unit,
        measurement=columns.measurement,
        measurement_column=names.index(columns.measurement_column) if has_measurements else None,
        fixed_tags=list(columns.fixed_tags.items()),
    )
