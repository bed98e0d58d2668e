"""`GatewayWriter`: one warm channel that takes records one by one and sends them in batches."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from fleetcast.client.checks import encode_checked
from fleetcast.client.records import Record, split
from fleetcast.client.results import RefusedBatch, Tally
from fleetcast.client.spool import Spool, SpoolFull
from fleetcast.client.transport import Channel, Outcome, Transport, Verdict
from fleetcast.engine import FIELDS_MAX, TAGS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

_BACKOFF_FIRST_SECONDS = 0.2
_BACKOFF_MAX_SECONDS = 30.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a writer batches and waits; `tags_max` and `fields_max` are the service's limits."""

    records_max: int = 1000
    bytes_max: int = 1_048_576
    age_seconds: float = 1.0
    timeout_seconds: float = 30.0
    memory_bytes_max: int = 8_388_608
    spool_bytes_max: int = 268_435_456
    resend_uncertain: bool = True
    tags_max: int = TAGS_MAX
    fields_max: int = FIELDS_MAX


class GatewayWriter:
    """Sends records in the order in which they were written. Safe to share between threads.

    A batch is sent when it has `records_max` records or `bytes_max` bytes, or when its first record
    is `age_seconds` old. While the server is away, batches wait in memory, then in the folder
    `spool`, which the next writer on it sends first.

    Batches that the server refuses for good go to `on_refused`, in the thread that sends; those
    after it go on. Where the content of a batch is refused, halves of it are sent until the records
    at fault are found: only those are handed back, the others are stored.

    A call whose end is not known (connection lost, time out, cut off by `close`) is sent again, so
    its records may be there twice; with `resend_uncertain=False` it is handed to `on_refused`
    instead, to be reconciled.

    Raises `SpoolInUse` if another writer has the folder, `OSError` if it cannot be used.
    """

    def __init__(
        self,
        target: str,
        key: str,
        *,
        on_refused: Callable[[RefusedBatch], None],
        authority: bytes | None = None,
        spool: Path | None = None,
        options: Options | None = None,
        transport: Transport | None = None,
    ) -> None:
        self._options = options or Options()
        self._on_refused = on_refused
        self._transport = transport or Channel(
            target, key, authority, self._options.timeout_seconds
        )
        self._spool = Spool(
            spool,
            memory_bytes_max=self._options.memory_bytes_max,
            disk_bytes_max=self._options.spool_bytes_max,
        )
        self._changed = threading.Condition()
        self._open: list[bytes] = []
        self._open_bytes = 0
        self._open_since = 0.0
        self._flushing = 0
        self._closed = threading.Event()
        self._tally = Tally()
        self._thread = threading.Thread(target=self._run, name="gateway-writer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def tally(self) -> Tally:
        """Fate of all records written so far."""
        return replace(self._tally, unreadable_batches=self._spool.unreadable_count)

    def write(self, record: Record) -> None:
        """Takes one record. It is sent soon, not now.

        Raises `SpoolFull` where the server has been away for too long, `OSError` where the spool
        cannot be written; the record is not taken then. Raises `ValueError` for what the service
        would refuse, with the name of the part that is at fault, and when the writer is closed.
        """
        options = self._options
        encoded = encode_checked(record, tags_max=options.tags_max, fields_max=options.fields_max)
        with self._changed:
            if self._closed.is_set():
                message = "the writer is closed"
                raise ValueError(message)
            if self._open and self._open_bytes + len(encoded) > self._options.bytes_max:
                self._end_batch()
            if len(self._open) >= self._options.records_max:
                self._end_batch()
            if not self._open:
                self._open_since = time.monotonic()
            self._open.append(encoded)
            self._open_bytes += len(encoded)
            self._changed.notify_all()

    def flush(self, timeout_seconds: float | None = None) -> bool:
        """Waits until all records written so far are stored or handed back; false out of time."""
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(self._is_empty, timeout_seconds)
            finally:
                self._flushing -= 1

    def close(self, timeout_seconds: float = 10.0) -> int:
        """Sends what it can in that time and keeps the rest in the spool.

        Returns how many batches could neither be sent nor kept: none where a spool can be written.
        """
        self.flush(timeout_seconds)
        with self._changed:
            self._closed.set()
            self._changed.notify_all()
        self._transport.close()
        self._thread.join()
        lost_count = 0
        with self._changed:
            if self._open:
                try:
                    self._end_batch()
                except (SpoolFull, OSError):
                    logger.exception("the last records cannot be kept")
                    lost_count = 1
            return lost_count + self._spool.close()

    def _is_empty(self) -> bool:
        return not self._open and not len(self._spool)

    def _end_batch(self) -> None:
        self._spool.add(b"".join(self._open))
        self._open, self._open_bytes = [], 0

    def _run(self) -> None:
        failures = 0
        parts: list[bytes] = []  # the rest of the oldest batch, from the last to the first
        while not self._closed.is_set():
            if not parts:
                request = self._next()
                if request is None:
                    return
                parts = [request]
            outcome = self._transport.send(parts[-1])
            is_uncertain = outcome.verdict is Verdict.UNCERTAIN
            is_handed_back = is_uncertain and not self._options.resend_uncertain
            is_done = outcome.verdict is Verdict.WRITTEN or is_handed_back
            if self._closed.is_set() and not is_done:
                return
            if outcome.verdict is Verdict.AGAIN or (is_uncertain and not is_handed_back):
                self._count(resent_batches=1)
                failures += 1
                self._closed.wait(_delay(failures, outcome.retry_seconds))
                continue
            failures = 0
            if outcome.verdict is Verdict.SPLIT and (halves := _halves(parts[-1])):
                parts[-1:] = reversed(halves)
                continue
            self._settle(parts.pop(), outcome)
            self._forget_all_but(parts)

    def _forget_all_but(self, parts: list[bytes]) -> None:
        """Shortens the oldest batch to the parts that are still to be sent."""
        with self._changed:
            if not parts:
                self._spool.drop_first()
            else:
                try:
                    self._spool.shorten_first(b"".join(reversed(parts)))
                except OSError:
                    logger.exception("the spool keeps a batch of which a part is stored")
            self._changed.notify_all()

    def _next(self) -> bytes | None:
        """The oldest batch, when there is one and it is due; `None` when the writer is closed."""
        with self._changed:
            while not self._closed.is_set():
                first = self._spool.first()
                if first is not None:
                    return first.request
                self._changed.notify_all()  # the last files may have been set aside
                wait = None
                if self._open:
                    due = self._open_since + self._options.age_seconds - time.monotonic()
                    full = len(self._open) >= self._options.records_max
                    if due <= 0 or full or self._flushing:
                        self._end_batch()
                        continue
                    wait = due
                self._changed.wait(wait)
        return None

    def _settle(self, request: bytes, outcome: Outcome) -> None:
        """Counts records that are done with, or hands them back."""
        if outcome.verdict is Verdict.WRITTEN:
            self._count(accepted=outcome.accepted_count, rejected=outcome.rejected_count)
            return
        self._count(refused=len(split(request)))
        uncertain = outcome.verdict is Verdict.UNCERTAIN
        try:
            self._on_refused(RefusedBatch(request, outcome.status, outcome.details, uncertain))
        except Exception:
            logger.exception("on_refused failed; the batch is lost")

    def _count(self, **more: int) -> None:
        counts = {name: getattr(self._tally, name) + count for name, count in more.items()}
        self._tally = replace(self._tally, **counts)


def _halves(request: bytes) -> list[bytes]:
    """The records of a batch as two batches, none where there is only one."""
    records = split(request)
    middle = len(records) // 2
    return [b"".join(part) for part in (records[:middle], records[middle:])] if middle else []


def _delay(failures: int, asked_seconds: float | None) -> float:
    """Seconds before the next attempt: as the server asks, and longer each time."""
    own = min(_BACKOFF_FIRST_SECONDS * 2.0 ** min(failures - 1, 16), _BACKOFF_MAX_SECONDS)
    return own if asked_seconds is None else max(asked_seconds, own)
