"""Writing the same records in JSON and in another format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.engine import Plane
from fleetcast.errors import Refused

from .strategies import NOW_NS
from .test_properties import TENANT, to_body

if TYPE_CHECKING:
    from collections.abc import Callable


def outcome(write: Callable, body: bytes) -> tuple:
    """Numbers that a write answers, or the arguments of its refusal."""
    try:
        result = write(body, now_ns=NOW_NS)
    except Refused as refused:
        return refused.args
    return result.accepted_count, result.rejected_indices, result.clamped_count


def assert_alike(
    method: str,
    batches: list[tuple[list[dict], bytes, bool]],
    latest: list[dict],
    series: list[dict],
) -> None:
    """One plane takes JSON, one what `method` takes, one either: all reads are the same bytes.

    A batch is its records, the same in the other format, and whether the third plane takes JSON.
    """
    planes = [Plane.in_memory(TENANT) for _ in range(3)]
    for records, other, json_to_third in batches:
        body = to_body(records)
        expected = outcome(planes[0].write_json, body)
        assert outcome(getattr(planes[1], method), other) == expected
        if json_to_third:
            assert outcome(planes[2].write_json, body) == expected
        else:
            assert outcome(getattr(planes[2], method), other) == expected
    for query in latest:
        assert len({plane.latest_json(**query) for plane in planes}) == 1
    for query in series:
        assert len({plane.series_json(**query, now_ns=NOW_NS) for plane in planes}) == 1
