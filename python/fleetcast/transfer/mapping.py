"""Roles of the columns of a table: time, measurement, tags, fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.engine import FieldKind

TimeUnit = Literal["s", "ms", "us", "ns"]

_TAGS = ("entity_id", "entity_type")
_ENTITY = "entity_id"
_SHOWN_MAX = 20
# Types of InfluxDB's extended annotated CSV, after a column's name and a bar.
_KINDS: Mapping[str, FieldKind] = {
    "double": "float",
    "long": "float",
    "unsignedLong": "float",
    "boolean": "bool",
    "string": "text",
}
_ROLES = {"dateTime:RFC3339", "measurement", "tag", "ignored", *_KINDS}


@dataclass(frozen=True)
class ColumnOptions:
    """Options of an operator for the columns of all tables of an import."""

    time_column: str = "time"
    time_unit: TimeUnit | None = None
    """Unit of times that are numbers; `None` for ISO 8601."""
    entity_column: str | None = None
    tag_columns: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)
    measurement: str | None = None


@dataclass(frozen=True)
class Columns:
    """Columns of one table by their role."""

    time: str
    time_unit: TimeUnit | None
    measurement: str | None
    """The measurement of all rows; `None` if a column has the measurement."""
    measurement_column: str
    tags: Mapping[str, str]
    """Column of each tag."""
    fixed_tags: Mapping[str, str]
    fields: Mapping[str, tuple[str, FieldKind | None]]
    """Field of each other column, and its type if the header names it."""

    @property
    def has_twins(self) -> bool:
        """Returns true if two columns are one field, each with another type."""
        return len({name for name, _ in self.fields.values()}) < len(self.fields)

    def for_engine(self) -> dict[str, object]:
        """The mapping that `Plane.write_arrow` takes. NUL in column names is escaped as `%00`."""
        column = {"column": self.measurement_column}
        unit = {} if self.time_unit is None else {"time_unit": self.time_unit}
        return unit | {
            "time": self.time,
            "measurement": column if self.measurement is None else self.measurement,
            "tags": {name: _plain(column) for name, column in self.tags.items()},
            "fixed_tags": dict(self.fixed_tags),
            "fields": {name: _plain(column) for column, (name, _) in self.fields.items()},
        }


def _plain(column: str) -> str:
    return column.replace("\0", "%00")


def assign(file: str, names: Sequence[str], options: ColumnOptions) -> Columns:
    """Returns the roles of the columns `names`. Raises `OperatorError` if a column is missing."""
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        message = f"{file} has two columns {twice}"
        raise OperatorError(message)
    if names and all(name.rpartition("|")[2] in _ROLES and "|" in name for name in names):
        return _annotated(file, names)
    tags = {options.renames.get(name, name): name for name in options.tag_columns}
    tags |= {name: name for name in _TAGS if name in names and name not in tags}
    if options.entity_column is not None:
        tags[_ENTITY] = options.entity_column
    special = {options.time_column, *tags.values()}
    needed = [options.time_column, *tags.values(), *options.renames]
    if options.measurement is None:
        needed.append("measurement")
        special.add("measurement")
    _check(file, names, needed)
    fields: dict[str, tuple[str, FieldKind | None]] = {
        name: (options.renames.get(name, name), None) for name in names if name not in special
    }
    _check_once(file, [name for name, _ in fields.values()])
    return Columns(
        time=options.time_column,
        time_unit=options.time_unit,
        measurement=options.measurement,
        measurement_column="measurement",
        tags=tags,
        fixed_tags=options.tags,
        fields=fields,
    )


def _annotated(file: str, names: Sequence[str]) -> Columns:
    """Reads roles from a header. Example: `time|dateTime:RFC3339,site|tag,snr_db|double`."""
    roles: dict[str, dict[str, str]] = {}
    fields: dict[str, tuple[str, FieldKind | None]] = {}
    for column in names:
        name, _, role = column.rpartition("|")
        if role in _KINDS:
            fields[column] = name, _KINDS[role]
        else:
            roles.setdefault(role, {})[name] = column
    times = roles.get("dateTime:RFC3339", {})
    measurements = roles.get("measurement", {})
    if len(times) != 1 or len(measurements) != 1:
        message = f"{file} must have one column of dateTime:RFC3339 and one of measurement"
        raise OperatorError(message)
    return Columns(
        time=next(iter(times.values())),
        time_unit=None,
        measurement=None,
        measurement_column=next(iter(measurements.values())),
        tags=roles.get("tag", {}),
        fixed_tags={},
        fields=fields,
    )


def _check(file: str, names: Sequence[str], needed: Sequence[str]) -> None:
    missing = next((name for name in needed if name not in names), None)
    if missing is None:
        return
    hint = {
        "time": " (give --time-column)",
        "measurement": " (give --measurement)",
    }.get(missing, "")
    shown = ", ".join(names[:_SHOWN_MAX]) + (", ..." if len(names) > _SHOWN_MAX else "")
    message = f"{file} has no column {missing}{hint}; it has {shown}"
    raise OperatorError(message)


def _check_once(file: str, fields: Sequence[str]) -> None:
    twice = next((name for name in fields if fields.count(name) > 1), None)
    if twice is not None:
        message = f"{file} would have two fields {twice}"
        raise OperatorError(message)
