"""What one worker process grants its clients. Every bound has its unit last in its name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a connection in bytes and seconds. The defaults are the contract's."""

    body_bytes_max: int = 1_048_576
    """A longer body is never buffered; the app refuses it by its Content-Length."""
    head_bytes_max: int = 65_536
    """Request line and all header fields together."""
    read_deadline_seconds: float = 15.0
    """From the first byte of a head to its end; no byte restarts it."""
    request_deadline_seconds: float = 30.0
    """From the end of a head to the last byte of its body; no byte restarts it."""
    idle_seconds: float = 60.0
    """A connection without a request is closed after this."""
    unread_body_seconds: float = 5.0
    """How long the body of a request that needs none is skipped before closing."""
    drain_seconds: float = 1.0
    """How long input is thrown away before closing, so that the client can read its answer."""
    drain_bytes_max: int = 8 * 1_048_576
    """How much input is thrown away at most, in both cases."""
    answer_seconds: float = 30.0
    """What every answer may take, on top of its size over the slowest rate."""
    answer_bytes_per_second_min: int = 65_536
    """A client that reads slower than this loses its connection."""
    stop_idle_seconds: float = 1.0
    """How long a stopping worker still takes a request that may be under way already."""
    stop_request_seconds: float = 5.0
    """How long a stopping worker waits for the rest of a request that has begun."""
    connections_max: int = 4_096
    """Per worker; beyond it the oldest connection that is not being served is closed."""
