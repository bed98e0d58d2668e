"""Messages as records: a JSON object of fields, a record, or an array of either."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fleetcast.client.checks import check_record
from fleetcast.client.times import time_ns, time_text
from fleetcast.engine import BATCH_RECORDS_MAX, FIELDS_MAX, TAGS_MAX
from fleetcast.mqtt.topics import Template, split_measurement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.mqtt.settings import TopicSettings

_YEAR_2000_NS = 946_684_800_000_000_000
_UNITS_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class MessageFault(ValueError):
    """A message that holds no records, and never will."""


@dataclass(frozen=True)
class Parsed:
    """Records of one message. `timed`: each says its time itself, so a repetition is the same."""

    records: list[dict[str, Any]]
    timed: bool


class Parser:
    """Reads messages by the first template that fits their topic."""

    def __init__(self, topics: Sequence[TopicSettings]) -> None:
        self._forms = [(Template(topic.template), topic) for topic in topics]

    def parse(self, name: str, payload: bytes, received_ns: int) -> Parsed:
        """The records of a message; those without a time get that at which it was received.

        Raises `ValueError`, which says why it holds none: `MessageFault`, or that of a check.
        """
        topic, named = self._form(name)
        try:
            document = json.loads(payload, parse_constant=_no_number)
        except RecursionError:
            message = "brackets are too deep"
            raise MessageFault(message) from None
        items = document if isinstance(document, list) else [document]
        if not 0 < len(items) <= BATCH_RECORDS_MAX:
            message = f"{len(items)} records, and not 1 to {BATCH_RECORDS_MAX}"
            raise MessageFault(message)
        untimed_ns = received_ns
        timed = True
        records = []
        for item in items:
            record, has_time = _record(item, topic, named, untimed_ns)
            timed &= has_time
            untimed_ns += not has_time  # one instant each, so that none hides another
            records.append(record)
        return Parsed(records, timed)

    def _form(self, name: str) -> tuple[TopicSettings, dict[str, str]]:
        for template, topic in self._forms:
            named = template.match(name)
            if named is not None:
                return topic, named
        message = "no template has this form"
        raise MessageFault(message)


def _record(
    item: object, topic: TopicSettings, named: dict[str, str], received_ns: int
) -> tuple[dict[str, Any], bool]:
    """A record, and true where it says its own time. Raises `ValueError`."""
    if not isinstance(item, dict):
        message = "should be an object of fields, or an array of such"
        raise MessageFault(message)
    # A record has its fields in an object of their own; no field can be one.
    given = item if isinstance(item.get("fields"), dict) else {"fields": dict(item)}
    time = given.get("time", given["fields"].pop("time", None) if given is not item else None)
    if not given["fields"]:
        message = "fields: there are none"
        raise MessageFault(message)
    measurement, tags = split_measurement(named)
    own = given.get("tags", {})
    if not isinstance(own, dict):
        message = "tags: should be an object"
        raise MessageFault(message)
    record = {
        "measurement": given.get("measurement") or measurement or topic.measurement,
        "time": received_ns if time is None else _time(time, topic.time_unit),
        "tags": {**topic.tags, **own, **tags},
        "fields": given["fields"],
    }
    check_record(record, tags_max=TAGS_MAX, fields_max=FIELDS_MAX)
    if time_ns(record["time"]) < _YEAR_2000_NS:
        message = "time: is before 2000"
        raise MessageFault(message)
    return {**record, "time": time_text(record["time"])}, time is not None


def _time(value: object, unit: str) -> str | int:
    """An ISO 8601 text as it is, a number of `unit` since 1970 as nanoseconds."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = "time: should be a text or a number"
        raise MessageFault(message)
    try:
        return int(Decimal(str(value)) * _UNITS_NS[unit])
    except ArithmeticError:
        message = "time: is too far away"
        raise MessageFault(message) from None


def _no_number(text: str) -> None:
    message = f"{text} is no JSON"
    raise MessageFault(message)
