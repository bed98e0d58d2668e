"""Reasons of a refusal, in words for whoever has the file."""

from __future__ import annotations

from fleetcast.errors import Refused, TenantFull

_INVALID = {
    "tags": "tags: more than limits.tags_max, or one without a name",
    "fields": "fields: more than limits.fields_max",
}
_OF_TEXT = {"json_invalid"}  # their index is a position in the text


def faults(refusal: Refused, first: int, count: int) -> dict[int, str]:
    """The first fault of each of `count` records, which a schema refusal counts from `first`."""
    found: dict[int, str] = {}
    _, context = refusal.args
    detail = context.get("detail")
    for fault in detail if isinstance(detail, list) else []:
        _, *inside = fault["loc"]
        if inside and isinstance(inside[0], int) and 0 <= inside[0] - first < count:
            if fault["type"] in _OF_TEXT:
                return {}
            path = ".".join(str(part) for part in inside[1:])
            found.setdefault(inside[0] - first, f"{path}: {fault['msg']}" if path else fault["msg"])
    return found


def reason(refusal: Refused) -> str:
    """Reason why a batch of one record is refused."""
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
