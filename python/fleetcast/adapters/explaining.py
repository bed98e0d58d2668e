"""Sentences for people, which other protocols want in addition to a status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleetcast.surface.troubles import EXPLANATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.http.answers import ErrorResponse

Dropped = tuple[int, str, str, str]
"""Number of a line or value, code, place in the line, and sentence (`WriteResult.dropped`)."""

_FIELDS = {
    "tags": "tags: as many series as the tenant may have are there",
    "fields": "fields: as many as the tenant may have are there",
    "names": "the tags and field names of the body take more than eight times its bytes and 8 MiB: "
    "send fewer series at a time",
    "payload": "the body is not what its headers say",
    "precision": "precision: not one that is known here",
    "accept_partial": "accept_partial: true or false",
}


def sentence(answer: ErrorResponse) -> str:
    """Says an error, and what to do about it, in one line."""
    code, content = answer.code, answer.content
    if code == "schema_faults":
        return sentences(dropped_of(content))
    if code == "batch_too_large":
        return f"{content['received']} records, more than the {content['max']} of a batch"
    if code == "invalid_input":
        field = str(content.get("field"))
        return _FIELDS.get(field, f"{field}: not acceptable")
    if code == "field_type_conflict":
        return f"fields.{content.get('field')}: Field was written with another type before"
    return EXPLANATIONS.get(code, code.replace("_", " "))


def sentences(dropped: Sequence[Dropped], unit: str = "line") -> str:
    """Says the faults of some lines or values in one sentence."""
    return "; ".join(
        f"{unit} {number}: {reason(fault)}" for fault in dropped for number in fault[:1]
    )


def reason(fault: Dropped) -> str:
    """Says the fault of one record."""
    _, _, place, message = fault
    return f"{place}: {message}" if place else message


def dropped_of(content: Mapping[str, Any]) -> list[Dropped]:
    """Returns the faults of a refusal in the form of a write's faults."""
    found: list[Dropped] = []
    for fault in content["detail"]:
        _, number, *place = fault["loc"]
        found.append((number, fault["type"], ".".join(map(str, place)), fault["msg"]))
    return found
