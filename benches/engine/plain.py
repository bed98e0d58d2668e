"""The write path's parsing in Python: orjson, the contract's validation, columns. No storage.

It is what a careful Python service would do, and it is tuned: one pass, exact types instead of
`isinstance`, tags validated once per distinct tag set, arrays at the end. It does less than the
engine in one respect: orjson hides duplicate keys, so they are not refused.
"""

from __future__ import annotations

import re
from array import array
from datetime import UTC, datetime, timedelta

import orjson

RECORDS_MAX = 1_000
TAGS_MAX = 64
YEAR_2000_NS = 946_684_800_000_000_000
TENANT_TAGS = frozenset({"tenant", "tenant_id", "tenant_key"})

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(:\d\d)?(?:[.,](\d+))?([Zz]|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)


class Invalid(Exception):
    """The batch is refused: code, record, key."""


class Table:
    """Rows of one measurement."""

    __slots__ = ("columns", "series", "times_ns")

    def __init__(self) -> None:
        self.series: list[int] = []
        self.times_ns: list[int] = []
        self.columns: dict[str, Column] = {}


class Column:
    """Values of one field; `rows` of `None` means every row so far."""

    __slots__ = ("kind", "rows", "values")

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.rows: list[int] | None = None
        self.values: list = []


class Parser:
    """Knows the series seen before, as the engine does."""

    def __init__(self, tenant_key: str) -> None:
        self._tenant_key = tenant_key
        self._series_ids: dict[tuple, int] = {}
        self._series: dict[tuple, int] = {}

    def columns(  # noqa: C901, PLR0912, PLR0915 - calls are what costs in Python
        self, body: bytes, ingest_ns: int
    ) -> tuple[dict[str, Table], list[int]]:
        """Tables by measurement and the indices of rejected records. Raises `Invalid`."""
        try:
            records = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise Invalid("json_invalid", error.pos) from error
        if type(records) is not list:
            raise Invalid("list_type")
        if len(records) > RECORDS_MAX:
            raise Invalid("batch_too_large", len(records))
        tables: dict[str, Table] = {}
        rejected: list[int] = []
        series_ids = self._series_ids
        for index, record in enumerate(records):
            if type(record) is not dict:
                raise Invalid("model_attributes_type", index)
            measurement = record.get("measurement")
            if type(measurement) is not str or not measurement:
                raise Invalid("string_type", index, "measurement")
            time_ns = parse_time_ns(record.get("time"))
            if time_ns is None:
                raise Invalid("datetime_parsing", index, "time")
            tags = record.get("tags", {})
            if type(tags) is not dict:
                raise Invalid("dict_type", index, "tags")
            try:
                raw_key = (measurement, *tags, *tags.values())
                series = series_ids.get(raw_key)
            except TypeError as error:
                raise Invalid("string_type", index, "tags") from error
            if series is None:
                series = series_ids[raw_key] = self._intern(index, measurement, tags)
            fields = record.get("fields", {})
            if type(fields) is not dict:
                raise Invalid("dict_type", index, "fields")
            if not fields or time_ns < YEAR_2000_NS:
                for name, value in fields.items():
                    check_field(index, name, value)
                rejected.append(index)
                continue
            table = tables.get(measurement)
            if table is None:
                table = tables[measurement] = Table()
            row = len(table.series)
            table.series.append(series)
            table.times_ns.append(min(time_ns, ingest_ns))
            columns = table.columns
            for name, value in fields.items():
                kind = type(value)
                if kind is not float:
                    kind, value = check_field(index, name, value)  # noqa: PLW2901 - as it is stored
                column = columns.get(name)
                if column is None:
                    if not name:
                        raise Invalid("string_too_short", index, "fields")
                    column = columns[name] = Column(kind)
                if column.kind is not kind:
                    raise Invalid("field_type_conflict", index, name)
                values = column.values
                if column.rows is not None:
                    column.rows.append(row)
                elif len(values) != row:
                    column.rows = [*range(len(values)), row]
                values.append(value)
        for table in tables.values():
            table.series = array("I", table.series)
            table.times_ns = array("q", table.times_ns)
            for column in table.columns.values():
                if column.kind is float:
                    column.values = array("d", column.values)
        return tables, rejected

    def _intern(self, index: int, measurement: str, tags: dict) -> int:
        stamped = 0
        named = {}
        for key, value in tags.items():
            if type(value) is not str:
                raise Invalid("string_type", index, "tags", key)
            if not key:
                raise Invalid("invalid_input", "tags")
            is_tenant = key in TENANT_TAGS
            stamped += is_tenant
            named[key] = self._tenant_key if is_tenant else value
        if len(tags) - stamped > TAGS_MAX:
            raise Invalid("invalid_input", "tags")
        return self._series.setdefault((measurement, *sorted(named.items())), len(self._series))


def check_field(index: int, name: str, value: object) -> tuple[type, object]:
    """Type and value of a field. Raises `Invalid`."""
    if not name:
        raise Invalid("string_too_short", index, "fields")
    kind = type(value)
    if kind is int:
        return float, float(value)
    if kind in (float, bool, str):
        return kind, value
    raise Invalid("field_value_type", index, "fields", name)


def parse_time_ns(text: object) -> int | None:
    """Nanoseconds since 1970 of an ISO 8601 datetime, `None` where it is none."""
    if type(text) is not str:
        return None
    try:
        if len(text) == 24 and text[23] == "Z" and text[10] == "T" and text[4] == "-":
            # The characters of nearly all senders; every other character is checked below.
            return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND * 1_000
        match = _TIME.fullmatch(text)
        if match is None:
            return None
        date, minute, second, fraction, offset = match.groups()
        plain = f"{date}T{minute or '00:00'}{second or ':00'}{(offset or 'Z').upper()}"
        ns = int((fraction or "0")[:9].ljust(9, "0"))
        return (datetime.fromisoformat(plain) - _EPOCH) // _MICROSECOND * 1_000 + ns
    except ValueError:
        return None
