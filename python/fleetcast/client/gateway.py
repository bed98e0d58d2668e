"""`GatewayWriter`: takes records one by one and sends them in batches over one open channel."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from fleetcast.client.checks import encode_checked
from fleetcast.client.records import Record, split
from fleetcast.client.results import RefusedBatch, Tally
from fleetcast.client.spool import Spool, SpoolFull
from fleetcast.client.transport import Channel, Outcome, Verdict
from fleetcast.engine import FIELDS_MAX, TAGS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

_BACKOFF_FIRST_SECONDS = 0.2
_BACKOFF_MAX_SECONDS = 30.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Sizes and waits of a writer; `tags_max` and `fields_max` are the limits of the service.

    `timeout_seconds` bounds a call. `memory_bytes_max` and `spool_bytes_max` bound the batches that
    wait.

    Example: `Options(age_seconds=0.2)` sends a record after 0.2 s at the latest, in smaller
    batches.
    """

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
    is `age_seconds` old. While the server is away, batches wait in memory, and then in the folder
    `spool`. The next writer on this folder sends the batches in it first.

    Batches that the server refuses for good go to `on_refused`, which the sending thread calls.
    Later batches are still sent. If the server refuses the content of a batch, the writer sends
    halves of the batch until it has found the faulty records. Only the faulty records go to
    `on_refused`; all other records are stored.

    The fate of a call is unknown if the connection is lost, the time runs out, or `close` ends the
    call. The writer sends such a batch again, so its records may be stored twice. With
    `resend_uncertain=False` the batch goes to `on_refused` instead, and `Client.was_stored` can
    tell if it was stored.

    `authority` is the certificate of the authority that signs the server's certificate, in PEM or
    as its file. A server that cannot be reached is logged as a warning, with the reason.

    Raises `SpoolInUse` if another writer has the folder, `OSError` if the folder cannot be used,
    `ValueError` for a target with a scheme.

    Example:
        authority = Path("fleetcast-data/tls/ca.pem")
        with GatewayWriter("127.0.0.1:8443", key, authority=authority, on_refused=print) as writer:
            tags, fields = {"entity_id": "l1"}, {"snr_db": 12.5}
            writer.write({"measurement": "link", "time": now, "tags": tags, "fields": fields})
            writer.flush(10.0)  # true: stored, or given to `on_refused`
    """

    def __init__(
        self,
        target: str,
        key: str,
        *,
        on_refused: Callable[[RefusedBatch], None],
        authority: bytes | Path | None = None,
        spool: Path | str | None = None,
        options: Options | None = None,
        transport: Channel | None = None,
    ) -> None:
        if "://" in target:
            message = f"{target!r} is not HOST:PORT of a gRPC listener, such as 127.0.0.1:8443"
            raise ValueError(message)
        self._target = target
        self._options = options or Options()
        self._on_refused = on_refused
        self._transport = transport or Channel(
            target, key, authority, self._options.timeout_seconds
        )
        self._spool = Spool(
            None if spool is None else Path(spool),
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

    def __repr__(self) -> str:
        return f"GatewayWriter({self._target!r}, {self.tally})"

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def tally(self) -> Tally:
        """Counts of the records written so far, by their fate."""
        return replace(self._tally, unreadable_batches=self._spool.unreadable_count)

    def write(self, record: Record) -> None:
        """Takes one record, which is sent later in a batch (see `Options.age_seconds`).

        Raises `ValueError` if the service would refuse the record, with the name of the faulty
        part, or if the writer is closed. Raises `SpoolFull` if the server has been away for too
        long, and `OSError` if the spool cannot be written. The record was not taken if `write`
        raises.
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
        """Waits until all records are stored or handed back. Returns false if time runs out."""
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(self._is_empty, timeout_seconds)
            finally:
                self._flushing -= 1

    def close(self, timeout_seconds: float = 10.0) -> int:
        """Sends batches for at most `timeout_seconds`, then keeps the unsent batches in the spool.

        Returns the number of batches that were neither sent nor kept. The number is 0 if the spool
        can be written.
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
        parts: list[bytes] = []  # unsent parts of the oldest batch, the last part first
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
                if failures == 1:
                    logger.warning("%s: %s; sends again", self._target, outcome.in_words())
                self._closed.wait(_delay(failures, outcome.retry_seconds))
                continue
            failures = 0
            if outcome.verdict is Verdict.SPLIT and (halves := _halves(parts[-1])):
                parts[-1:] = reversed(halves)
                continue
            self._settle(parts.pop(), outcome)
            self._forget_all_but(parts)

    def _forget_all_but(self, parts: list[bytes]) -> None:
        """Shortens the oldest batch to the parts that are not sent yet."""
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
        """Waits for the oldest batch to be due; returns `None` if the writer is closed."""
        with self._changed:
            while not self._closed.is_set():
                first = self._spool.first()
                if first is not None:
                    return first.request
                self._changed.notify_all()  # `first` may have set the last files aside
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
        """Counts the records of a batch that is done with, or gives them to `on_refused`."""
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
    """Splits a batch into two batches; returns an empty list if it has only one record."""
    records = split(request)
    middle = len(records) // 2
    return [b"".join(part) for part in (records[:middle], records[middle:])] if middle else []


def _delay(failures: int, asked_seconds: float | None) -> float:
    """Seconds before the next attempt: twice as long each time, and at least `asked_seconds`.

    Example: without `asked_seconds` the waits are 0.2 s, 0.4 s, 0.8 s, … and 30 s at most.
    """
    own = min(_BACKOFF_FIRST_SECONDS * 2.0 ** min(failures - 1, 16), _BACKOFF_MAX_SECONDS)
    return own if asked_seconds is None else max(asked_seconds, own)
