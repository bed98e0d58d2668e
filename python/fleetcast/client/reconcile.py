"""Reconciliation of a batch whose acknowledgment never came: it is looked up.

A batch is stored whole or not at all, so a few of its records stand for all. They are looked up
as the newest sample of their entity just after their instant, which shows every type of field and
every measurement. Later writes of that instant may have changed it, so more than one is asked for.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fleetcast.client.times import SECOND_NS, time_ns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleetcast.client.records import Record

_YEAR_2000_NS = 946_684_800 * SECOND_NS


def probes(records: Iterable[Record]) -> list[Record]:
    """The first, the middle and the last of the records that can be found again, if there are any.

    Not among them are those without an entity or fields, those before 2000, and those to come,
    which are stored at another time. Of several at one instant of an entity the last counts.
    """
    now_ns = time.time_ns()
    found: dict[tuple[str, str, int], Record] = {}
    for record in records:
        at_ns = time_ns(record["time"])
        entity = record.get("tags", {}).get("entity_id")
        if entity and record.get("fields") and _YEAR_2000_NS <= at_ns <= now_ns:
            found[record["measurement"], entity, at_ns] = record
    chosen = list(found.values())
    return [chosen[at] for at in sorted({0, len(chosen) // 2, len(chosen) - 1})] if chosen else []


def holds(entities: Iterable[dict[str, Any]], record: Record) -> bool:
    """True where the entities of a `GET /topology` answer show the record."""
    at_ns, fields = time_ns(record["time"]), record["fields"]
    return any(
        entity["measurement"] == record["measurement"]
        and entity["entity_id"] == record["tags"]["entity_id"]
        and time_ns(entity["observed_at"]) == at_ns
        and all(_same(entity["fields"].get(name), value) for name, value in fields.items())
        for entity in entities
    )


def _same(stored: object, sent: object) -> bool:
    if isinstance(sent, int) and not isinstance(sent, bool):
        sent = float(sent)  # numbers are stored as doubles
    return type(stored) is type(sent) and stored == sent
