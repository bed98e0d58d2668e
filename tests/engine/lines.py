"""Records as lines of InfluxDB's line protocol, for tests."""

from __future__ import annotations

_NAME = str.maketrans({mark: f"\\{mark}" for mark in "\\,= "})
_MEASUREMENT = str.maketrans({mark: f"\\{mark}" for mark in "\\, "})
_TEXT = str.maketrans({mark: f"\\{mark}" for mark in '\\"'})


def to_lines(records: list[dict]) -> bytes:
    """Records of `measurement`, `time_ns`, `tags` and `fields`; one without fields has no time."""
    return "".join(_line(record) + "\n" for record in records).encode()


def _line(record: dict) -> str:
    tags = "".join(
        f",{key.translate(_NAME)}={value.translate(_NAME)}" for key, value in record["tags"].items()
    )
    series = record["measurement"].translate(_MEASUREMENT) + tags
    if not record["fields"]:
        return series
    fields = ",".join(
        f"{name.translate(_NAME)}={_value(value)}" for name, value in record["fields"].items()
    )
    return f"{series} {fields} {record['time_ns']}"


def _value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value}i"
        case str():
            return f'"{value.translate(_TEXT)}"'
        case _:
            return repr(value)
