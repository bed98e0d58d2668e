"""Records of any number as bodies of writes that the service takes, and their answers as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fleetcast.client.times import time_text
from fleetcast.engine import BATCH_RECORDS_MAX, encode_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleetcast.client.connection import ApiError
    from fleetcast.client.records import Record

_BODY_BYTES_MAX = 1_048_576  # of the service, unless `limits.body_bytes_max` says otherwise


class Body(NamedTuple):
    """A batch: the index of its first record, and its JSON."""

    first: int
    content: bytes


def bodies(records: Sequence[Record]) -> list[Body]:
    """Encodes records as batches of at most 1,000 records, and 1 MiB unless a record is longer.

    Raises `KeyError`, `TypeError` or `ValueError`; a note names the record.
    """
    rows = [_row(index, record) for index, record in enumerate(records)]
    starts = range(0, max(len(rows), 1), BATCH_RECORDS_MAX)
    parts = ((first, rows[first : first + BATCH_RECORDS_MAX]) for first in starts)
    return [body for first, part in parts for body in _fitting(part, first)]


def _row(index: int, record: Record) -> dict[str, Any]:
    try:
        return {**record, "time": time_text(record["time"])}
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        error.add_note(f"record {index}: time" if "time" in record else f"record {index}: no time")
        raise


def _fitting(rows: list[dict[str, Any]], first: int) -> Iterator[Body]:
    content = encode_rows(rows, first, datetimes=False)
    if len(content) <= _BODY_BYTES_MAX or len(rows) == 1:
        yield Body(first, content)
        return
    middle = len(rows) // 2
    yield from _fitting(rows[:middle], first)
    yield from _fitting(rows[middle:], first + middle)


def merged(
    batches: Sequence[Body], answers: Sequence[dict[str, Any]], records: Sequence[Record]
) -> dict[str, Any]:
    """Makes one acknowledgment of all batches. `write_id` is the id of the first batch.

    `rejected_records` are the records that were rejected one by one.
    """
    indices = [
        batch.first + index
        for batch, answer in zip(batches, answers, strict=True)
        for index in answer.get("rejected_indices") or ()
    ]
    return answers[0] | {
        "accepted_count": sum(answer["accepted_count"] for answer in answers),
        "rejected_indices": indices or None,
        "rejected_records": [records[index] for index in indices],
    }


def name_the_records(error: ApiError, first: int, records: Sequence[Record]) -> None:
    """Adds a note to an error for each fault of a record, up to ten.

    Example: `record 1003, link of l7: fields.snr_db: Input should be a finite number`.
    """
    detail = error.body.get("detail") if isinstance(error.body, dict) else None
    for fault in detail[:10] if isinstance(detail, list) else ():
        place = fault.get("loc", ())[1:]
        if place and isinstance(place[0], int):
            index = first + place[0]
            record = records[index]
            entity = record.get("tags", {}).get("entity_id")
            path = ".".join(map(str, place[1:]))
            named = f"record {index}, {record.get('measurement')} of {entity}"
            error.add_note(f"{named}: {path}: {fault.get('msg')}")
