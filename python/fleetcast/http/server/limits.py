"""Bounds that one worker process sets its clients, each with its unit last in its name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
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
    """Time for which the body of a request that needs none is skipped before closing."""
    drain_seconds: float = 1.0
    """Time for which input is thrown away before closing, so that the client reads its answer."""
    drain_bytes_max: int = 8 * 1_048_576
    """Bound on the input that is thrown away in either case."""
    answer_seconds: float = 30.0
    """Time for which a client may take nothing of an answer, or lag behind the slowest rate."""
    answer_bytes_per_second_min: int = 65_536
    """A client that has read slower than this so far loses its connection."""
    stop_idle_seconds: float = 1.0
    """Time for which a stopping worker still takes a request that may be under way already."""
    stop_request_seconds: float = 5.0
    """Time for which a stopping worker waits for the rest of a request that has begun."""
    connections_max: int = 4_096
    """Per worker; beyond it the oldest connection that is not being served is closed, of the
    address that has the most. Also how many requests may be under way, of which a tenant gets half,
    or less where others have some.
    """
    body_bytes_under_way_max: int = 256 * 1_048_576
    """Bodies that are being received or wait for a thread, per worker, shared in the same way."""
    unsent_bytes_max: int = 256 * 1_048_576
    """Answers that clients have not taken, per worker. Beyond it those who take nothing are cut."""
    unsent_bytes_per_tenant_max: int = 64 * 1_048_576
    """A read whose answer would take its tenant past this waits; one alone always passes."""
    unsent_wait_seconds: float = 5.0
    """A read that has waited so long for that is refused."""
    takes_chunks: bool = False
    """A body in chunks is put together; else nobody reads one."""
