"""Times as callers give them, as nanoseconds since 1970, and as the service writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fleetcast.engine import time_ns

__all__ = ["SECOND_NS", "time_ns", "time_text"]

SECOND_NS = 1_000_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_text(time: object) -> str:
    """Returns a time, as `time_ns` takes it, as ISO 8601 text; a text is returned unchanged.

    Raises `OverflowError` if the year does not have four digits.

    Example: 1,772,323,200,000,000,001 becomes `2026-03-01T00:00:00.000000001Z`.
    """
    if isinstance(time, str):
        return time
    if isinstance(time, datetime):
        return time.isoformat()
    seconds, nanos = divmod(time_ns(time), SECOND_NS)
    return f"{(_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()}.{nanos:09}Z"
