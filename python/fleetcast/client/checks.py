"""Checks of single records, so that a faulty record does not make the service refuse its batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from fleetcast.client.records import encode_record
from fleetcast.client.times import SECOND_NS, time_ns
from fleetcast.engine import is_acceptable

if TYPE_CHECKING:
    from fleetcast.client.records import Record

_ENTITY_ID = "entity_id"
_STAMPED_TAGS = frozenset({"tenant", "tenant_id", "tenant_key"})  # the service sets these itself
_YEAR_1_SECONDS = -62_135_596_800
_YEAR_10000_SECONDS = 253_402_300_800
_SHOWN_CHARACTERS_MAX = 80


def encode_checked(record: Record, *, tags_max: int, fields_max: int) -> bytes:
    """Encodes a record as a field of a `WriteRequest`, if the service would take the record.

    Uses the engine's own rules. Raises the `ValueError` of `check_record`, which names the faulty
    part.
    """
    try:
        encoded = encode_record(record)
        if is_acceptable(encoded, tags_max=tags_max, fields_max=fields_max):
            return encoded
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
        check_record(record, tags_max=tags_max, fields_max=fields_max)
        raise
    check_record(record, tags_max=tags_max, fields_max=fields_max)
    return encoded


def check_record(record: Record, *, tags_max: int, fields_max: int) -> None:
    """Raises `ValueError` if a part of `record` is faulty; the message begins with its name.

    A record without fields or from before 2000 passes, because the service rejects such a record
    without refusing its batch. Example: `fields.snr_db: nan is not finite`.
    """
    if not isinstance(record, Mapping):
        _fail("record", "is no mapping")
    for name in ("measurement", "time"):
        if name not in record:
            _fail(name, "is missing")
    _check_text("measurement", record["measurement"], empty=False)
    _check_time(record["time"])
    _check_tags(record.get("tags", {}), tags_max)
    fields = record.get("fields", {})
    if not isinstance(fields, Mapping):
        _fail("fields", "is no mapping")
    if len(fields) > fields_max:
        _fail("fields", f"{len(fields)} of them, {fields_max} at most")
    for name, value in fields.items():
        _check_text("fields", name, empty=False)
        _check_value(f"fields.{name}", value)


def _check_time(time: object) -> None:
    try:
        seconds = time_ns(time) // SECOND_NS
    except (TypeError, ValueError, OverflowError) as error:
        _fail("time", str(error))
    if not _YEAR_1_SECONDS <= seconds < _YEAR_10000_SECONDS:
        _fail("time", "is not in the years 1 to 9999")


def _check_tags(tags: object, tags_max: int) -> None:
    if not isinstance(tags, Mapping):
        _fail("tags", "is no mapping")
    count = len(tags.keys() - _STAMPED_TAGS)
    if count > tags_max:
        _fail("tags", f"{count} of them, {tags_max} at most")
    for key, value in tags.items():
        _check_text("tags", key, empty=False)
        _check_text(f"tags.{key}", value, empty=key != _ENTITY_ID)
    if _ENTITY_ID not in tags:
        _fail(f"tags.{_ENTITY_ID}", "is missing")


def _check_value(where: str, value: object) -> None:
    if isinstance(value, str):
        _check_text(where, value, empty=True)
    elif isinstance(value, bool):
        return
    elif not isinstance(value, int | float):
        _fail(where, f"a {type(value).__name__} cannot be written as telemetry")
    else:
        try:
            if not math.isfinite(value):
                _fail(where, f"{value} is not finite")
        except OverflowError:
            _fail(where, "the integer is beyond the largest double")


def _check_text(where: str, text: object, *, empty: bool) -> None:
    if not isinstance(text, str):
        _fail(where, f"a {type(text).__name__} is no text")
    if not (text or empty):
        _fail(where, "is empty")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            _fail(where, "half of a surrogate pair is no text")


def _fail(where: str, problem: str) -> NoReturn:
    name = where if len(where) <= _SHOWN_CHARACTERS_MAX else f"{where[:_SHOWN_CHARACTERS_MAX]}…"
    message = f"{name}: {problem}"
    raise ValueError(message)
