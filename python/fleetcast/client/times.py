"""Times as callers give them, as nanoseconds since 1970, and as the service writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fleetcast.engine import time_ns

__all__ = ["SECOND_NS", "time_ns", "time_text"]

SECOND_NS = 1_000_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_text(time: object) -> str:
    """ISO 8601 text, to the nanosecond, of a time as `time_ns` takes it; a text as it is.

    Raises `OverflowError` where the year has no four digits.
    """
    if isinstance(time, str):
        return time
    if isinstance(time, datetime):
        return time.isoformat()
    seconds, nanos = divmod(time_ns(time), SECOND_NS)
    return f"{(_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()}.{nanos:09}Z"
