"""`GatewayWriter`: one warm channel that takes records one by one and sends them in batches."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from fleetcast.client.records import Record, decode_records, encode_record, split
from fleetcast.client.spool import Spool
from fleetcast.client.transport import Channel, Outcome, Transport, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

_BACKOFF_FIRST_SECONDS = 0.2
_BACKOFF_MAX_SECONDS = 30.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RefusedBatch:
    """Records that the server will never take as they are, and why.

    `status` and `details` are the server's: `INVALID_ARGUMENT`, `invalid_input:tags`. `uncertain`
    says that they may have been stored, see `GatewayWriter(resend_uncertain=False)`.
    """

    request: bytes
    status: str
    details: str
    uncertain: bool = False

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records, times as nanoseconds since 1970."""
        return decode_records(self.request)


@dataclass(frozen=True)
class Tally:
    """What became of everything so far, in records; `resent_batches` counts sendings."""

    accepted: int = 0
    rejected: int = 0
    refused: int = 0
    resent_batches: int = 0


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a writer batches and waits."""

    records_max: int = 1000
    bytes_max: int = 1_048_576
    age_seconds: float = 1.0
    timeout_seconds: float = 30.0
    memory_bytes_max: int = 8_388_608
    spool_bytes_max: int = 268_435_456
    resend_uncertain: bool = True


class GatewayWriter:
    """Sends records in the order in which they were written. Safe to share between threads.

    A batch is sent when it has `records_max` records or `bytes_max` bytes, or when its first record
    is `age_seconds` old. While the server is away, batches wait in memory, then in the folder
    `spool`, which the next writer on it sends first.

    What the server refuses for good goes to `on_refused`, in the thread that sends; the batches
    after it go on. A call whose end is not known (connection lost, time out) is sent again, so its
    records may be there twice; with `resend_uncertain=False` it is handed to `on_refused` instead,
    to be reconciled.
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
        """What became of everything so far."""
        return self._tally

    def write(self, record: Record) -> None:
        """Takes one record. It is sent soon, not now.

        Raises `SpoolFull` where the server has been away for too long, `OSError` where the spool
        cannot be written; the record is not taken then. Raises `KeyError`, `TypeError` or
        `ValueError` for what is no record.
        """
        encoded = encode_record(record)
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
        """Waits until everything written so far is stored or handed back; false out of time."""
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(self._is_empty, timeout_seconds)
            finally:
                self._flushing -= 1

    def close(self, timeout_seconds: float = 10.0) -> int:
        """Sends what it can in that time and keeps the rest in the spool.

        Returns how many batches could neither be sent nor kept, which is none with a spool.
        """
        self.flush(timeout_seconds)
        with self._changed:
            self._closed.set()
            self._changed.notify_all()
        self._transport.close()
        self._thread.join()
        with self._changed:
            if self._open:
                self._end_batch()
            return self._spool.keep()

    def _is_empty(self) -> bool:
        return not self._open and not len(self._spool)

    def _end_batch(self) -> None:
        self._spool.add(b"".join(self._open))
        self._open, self._open_bytes = [], 0

    def _run(self) -> None:
        failures = 0
        while (request := self._next()) is not None:
            outcome = self._transport.send(request)
            if self._closed.is_set() and outcome.verdict is not Verdict.WRITTEN:
                return
            if outcome.verdict is Verdict.AGAIN or (
                outcome.verdict is Verdict.UNCERTAIN and self._options.resend_uncertain
            ):
                self._count(resent_batches=1)
                failures += 1
                self._closed.wait(_delay(failures, outcome.retry_seconds))
                continue
            failures = 0
            self._settle(request, outcome)
            with self._changed:
                self._spool.drop_first()
                self._changed.notify_all()

    def _next(self) -> bytes | None:
        """The oldest batch, when there is one and it is due; `None` when the writer is closed."""
        with self._changed:
            while not self._closed.is_set():
                try:
                    first = self._spool.first()
                except OSError:
                    logger.exception("the spool cannot be read")
                    self._changed.wait(_BACKOFF_MAX_SECONDS)
                    continue
                if first is not None:
                    return first.request
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
        """Counts a batch that is done with, or hands it back; sends it in two if it must."""
        if outcome.verdict is Verdict.WRITTEN:
            self._count(accepted=outcome.accepted_count, rejected=outcome.rejected_count)
            return
        records = split(request)
        if outcome.verdict is Verdict.SPLIT and len(records) > 1:
            half = len(records) // 2
            for part in (records[:half], records[half:]):
                joined = b"".join(part)
                self._settle(joined, self._send_through(joined))
            return
        self._count(refused=len(records))
        uncertain = outcome.verdict is Verdict.UNCERTAIN
        try:
            self._on_refused(RefusedBatch(request, outcome.status, outcome.details, uncertain))
        except Exception:
            logger.exception("on_refused failed; the batch is lost")

    def _send_through(self, request: bytes) -> Outcome:
        """Sends a part of a batch for as long as it takes."""
        failures = 0
        while True:
            outcome = self._transport.send(request)
            uncertain = outcome.verdict is Verdict.UNCERTAIN and self._options.resend_uncertain
            if (outcome.verdict is not Verdict.AGAIN and not uncertain) or self._closed.is_set():
                return outcome
            self._count(resent_batches=1)
            failures += 1
            self._closed.wait(_delay(failures, outcome.retry_seconds))

    def _count(self, **more: int) -> None:
        counts = {name: getattr(self._tally, name) + count for name, count in more.items()}
        self._tally = replace(self._tally, **counts)


def _delay(failures: int, told_seconds: float | None) -> float:
    """What the server said, or longer each time."""
    own = min(_BACKOFF_FIRST_SECONDS * 2.0 ** min(failures - 1, 16), _BACKOFF_MAX_SECONDS)
    return own if told_seconds is None else max(told_seconds, own)
