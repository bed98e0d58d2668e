"""Reasons of a refusal, in words for the owner of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.errors import Refused, TenantFull

if TYPE_CHECKING:
    from fleetcast.transfer.tables import RecordBatch

_INVALID = {
    "tags": "tags: more than limits.tags_max, or one without a name",
    "fields": "fields: more than limits.fields_max",
}


def faults(refusal: Refused, batch: RecordBatch) -> dict[int, str]:
    """Returns the first fault of each faulty record of a batch, by index."""
    found: dict[int, str] = {}
    _, context = refusal.args
    detail = context.get("detail")
    for fault in detail if isinstance(detail, list) else []:
        _, *inside = fault["loc"]
        if inside and isinstance(inside[0], int) and 0 <= inside[0] - batch.first < len(batch):
            index = inside[0] - batch.first
            if index not in found:
                found[index] = batch.reason(index, fault)
    return found


def reason(refusal: Refused) -> str:
    """Returns the reason why a batch of one record is refused."""
    code, context = refusal.args
    if code == "field_type_conflict":
        return f"field {context.get('field')} was written with another type before"
    if isinstance(refusal, TenantFull):
        return f"{context.get('field')}: as many as the tenant may have are there"
    if code == "invalid_input":
        return _INVALID[str(context["field"])]
    detail = context.get("detail")
    if isinstance(detail, list) and detail:
        return str(detail[0]["msg"])
    return code
