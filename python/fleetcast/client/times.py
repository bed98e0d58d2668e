"""Times as callers give them, as nanoseconds since 1970, and as the service writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

SECOND_NS = 1_000_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BELOW_MICROSECONDS = re.compile(r"[.,]\d{6}(\d{1,3})")


def time_ns(time: object) -> int:
    """Nanoseconds since 1970 of a `datetime`, an ISO 8601 text, or nanoseconds since 1970.

    A time without a zone is UTC. Raises `ValueError` for other text, `TypeError` for other types.
    """
    if isinstance(time, str):
        finer = _BELOW_MICROSECONDS.search(time)
        digits = finer[1] if finer else ""
        return time_ns(datetime.fromisoformat(time)) + int(digits.ljust(3, "0"))
    if isinstance(time, datetime):
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1) * 1000
    if isinstance(time, int) and not isinstance(time, bool):
        return time
    message = f"a {type(time).__name__} is not a time"
    raise TypeError(message)


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
