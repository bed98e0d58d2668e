"""Look-up of a batch that was never acknowledged, to learn if the batch is stored.

A batch is stored whole or not at all, so a few of its records stand for all records. Each record is
looked up as the newest sample of its entity just after its time. This shows every measurement and
every type of field. A later write at the same time may have replaced a record, so up to three
records are looked up.
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
    """Returns the first, the middle and the last of the records that can be looked up.

    A record cannot be looked up if it has no entity or no field, or a time before 2000 or in the
    future. The service stores a future record at another time. If an entity has several records at
    the same time, the last record counts.

    Example: of 1,000 records the first, the 501st and the last are looked up.
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
    """Returns true if the entities of a `GET /topology` answer show the record."""
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
        sent = float(sent)  # the service stores numbers as doubles
    return type(stored) is type(sent) and stored == sent
