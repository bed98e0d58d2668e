"""Messages as records: a JSON object of fields, a record, or an array of either."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fleetcast.client.checks import check_record
from fleetcast.client.times import time_ns, time_text
from fleetcast.engine import BATCH_RECORDS_MAX, FIELDS_MAX, TAGS_MAX
from fleetcast.mqtt.topics import Template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.mqtt.settings import TopicSettings

_YEAR_2000_NS = 946_684_800_000_000_000
_UNITS_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class MessageFault(ValueError):
    """A message that holds no records, and never will."""


@dataclass(frozen=True)
class Parsed:
    """Records of one message. `timed` is true if every record has its time.

    A repetition of such a message has the same records.
    """

    records: list[dict[str, Any]]
    timed: bool


class Parser:
    """Reads messages by the first template that fits their topic."""

    def __init__(self, topics: Sequence[TopicSettings]) -> None:
        self._forms = [(Template(topic.template), topic) for topic in topics]

    def parse(self, name: str, payload: bytes, received_ns: int) -> Parsed:
        """Returns the records of a message. A record without a time gets the time of reception.

        Raises `ValueError` with the reason if the message holds no records: `MessageFault`, or the
        error of a check. Example: with the template `fleet/{entity_id}/{measurement}`, the payload
        `{"snr_db": 9.5}` on topic `fleet/link-1/link` is a record. Its measurement is `link`, its
        tag `entity_id=link-1`.
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
            untimed_ns += not has_time  # an instant for each record, so that none hides another
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
    """Returns a record, and true if the record has its time. Raises `ValueError`."""
    if not isinstance(item, dict):
        message = "should be an object of fields, or an array of such"
        raise MessageFault(message)
    # In a record the fields are a nested object. A field itself cannot be an object.
    given = item if isinstance(item.get("fields"), dict) else {"fields": dict(item)}
    time = given.get("time", given["fields"].pop("time", None) if given is not item else None)
    if not given["fields"]:
        message = "fields: there are none"
        raise MessageFault(message)
    tags = dict(named)
    measurement = tags.pop("measurement", None)
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
    """Returns an ISO 8601 text as it is, and a number of `unit` since 1970 as nanoseconds.

    Example: 1700000000.5 in `s` is 1,700,000,000,500,000,000.
    """
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
