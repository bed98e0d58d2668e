"""Bounds on the clients of one worker process, each with its unit last in its name."""

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
    """Time for which an unneeded body is skipped before the connection is closed."""
    drain_seconds: float = 1.0
    """Time for which input is discarded before closing, so that the client reads its answer."""
    drain_bytes_max: int = 8 * 1_048_576
    """Bound on the discarded input in either case."""
    answer_seconds: float = 30.0
    """A client may take no byte of an answer, or lag behind the slowest rate, for this long."""
    answer_bytes_per_second_min: int = 65_536
    """A client that has read slower than this so far loses its connection."""
    stop_idle_seconds: float = 1.0
    """Time for which a stopping worker still takes a request that may be under way already."""
    stop_request_seconds: float = 5.0
    """Time for which a stopping worker waits for the rest of a request that has begun."""
    connections_max: int = 4_096
    """Bound on open connections per worker, and on requests under way.

    Beyond the bound the worker closes the oldest connection that is not being served, of the
    address that has the most connections. A tenant may have as many requests under way as are still
    free. Example: of 4,096 requests a lone tenant gets 2,048, and 1,024 if other tenants have
    2,048.
    """
    body_bytes_under_way_max: int = 256 * 1_048_576
    """Bodies that are being received or wait for a thread, per worker, shared in the same way."""
    unsent_bytes_max: int = 256 * 1_048_576
    """Answers that clients have not taken, per worker. Beyond it, clients that take none are cut.
    """
    unsent_bytes_per_tenant_max: int = 64 * 1_048_576
    """A read waits if its answer would take its tenant past this bound; a lone read always passes.
    """
    unsent_wait_seconds: float = 5.0
    """A read that has waited this long for `unsent_bytes_per_tenant_max` is refused."""
    takes_chunks: bool = False
    """If true, a body in chunks is put together; if false, it is never read."""
