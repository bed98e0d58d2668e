"""Delivery of batches to the service, oldest first.

If a part got no answer, the bridge asks the service whether the part is stored, and sends it again
only if it is not.
"""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from fleetcast.client.connection import ApiError

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from fleetcast.client import Client
    from fleetcast.mqtt.spool import MessageSpool, Spooled
    from fleetcast.mqtt.tally import BridgeTally

logger = logging.getLogger("fleetcast.mqtt")

_PAUSE_FIRST_SECONDS = 0.5
_PAUSE_MAX_SECONDS = 30.0
_NOT_ALLOWED_SECONDS = 60
# Error codes of the service about the records. No record of such a batch was stored.
_REFUSALS = {
    *("invalid_input", "field_type_conflict", "batch_too_large", "request_too_large"),
}


class Stopped(Exception):
    """Raised when the bridge ends. Batches that are not stored stay in the spool."""


class _StillUnknown(Exception):
    """Raised if the service does not say whether a part was stored."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(str(error))
        self.error = error


class Delivery:
    """Stores batches of the spool by `client`. `settle_seconds`: see `ServiceSettings`."""

    def __init__(
        self,
        spool: MessageSpool,
        client: Client,
        settle_seconds: float,
        tally: BridgeTally,
        stopping: threading.Event,
    ) -> None:
        self._spool = spool
        self._client = client
        self._settle_seconds = settle_seconds
        self._tally = tally
        self._stopping = stopping

    def deliver(self, batch: Spooled) -> None:
        """Returns when the service has taken or refused every record. Raises `Stopped`."""
        # After a start the monotonic time of the sending is unknown.
        parts, sent_at = list(batch.parts), None if batch.sent_at is None else time.monotonic()
        pause = _PAUSE_FIRST_SECONDS
        while parts:
            first, end = parts[-1]
            try:
                if sent_at is None or not self._was_stored(batch.records[first:end], sent_at):
                    sent_at = time.monotonic()
                    self._spool.note_sent(batch.id, time.time())
                    self._write(batch.records[first:end])
            except ApiError as error:
                if _is_before(error):
                    sent_at = None
                    self._spool.note_sent(batch.id, None)
                first, end = parts[-1]
                # If a proxy's bound refused the body, smaller bodies may pass.
                is_too_large = error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                if _is_refusal(error) or (is_too_large and end - first > 1):
                    parts[-1:] = self._smaller(batch, (first, end), error)
                    self._spool.replace_parts(batch.id, parts)
                else:
                    self._wait(_seconds_of(error, pause), error)
                    pause = min(2 * pause, _PAUSE_MAX_SECONDS)
            except _StillUnknown as unknown:
                self._wait(_seconds_of(unknown.error, pause), unknown)
                pause = min(2 * pause, _PAUSE_MAX_SECONDS)
            except OSError as error:
                if isinstance(error, ConnectionRefusedError):  # no service was there to store it
                    sent_at = None
                    self._spool.note_sent(batch.id, None)
                self._wait(pause, error)
                pause = min(2 * pause, _PAUSE_MAX_SECONDS)
            else:
                parts.pop()
                sent_at, pause = None, _PAUSE_FIRST_SECONDS
                self._spool.replace_parts(batch.id, parts)

    def _write(self, records: Sequence[dict[str, object]]) -> None:
        answer = self._client.write(records)
        self._tally.stored += answer["accepted_count"]
        for index in answer["rejected_indices"] or ():
            self._refuse(records[index], "rejected")

    def _was_stored(self, records: Sequence[dict[str, object]], sent_at: float) -> bool:
        """Returns true if a write without an answer was done. Waits until the write is over."""
        self._pause(sent_at + self._settle_seconds - time.monotonic())
        try:
            found = self._client.was_stored(records)
        except ValueError:
            logger.warning("sent again, perhaps twice: no record of the batch can be looked up")
            return False
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise _StillUnknown(error) from None
            logger.warning("sent again, perhaps twice: the key needs topology:read to look it up")
            return False
        self._tally.looked_up += 1
        self._tally.stored += len(records) if found else 0
        return found

    def _smaller(
        self, batch: Spooled, span: tuple[int, int], error: ApiError
    ) -> list[tuple[int, int]]:
        """Returns the halves of a refused part, the first half last; drops a single record.

        Example: part (0, 500) becomes [(250, 500), (0, 250)].
        """
        first, end = span
        if end - first == 1:
            self._refuse(batch.records[first], str(error))
            return []
        middle = (first + end) // 2
        return [(middle, end), (first, middle)]

    def _refuse(self, record: dict[str, object], reason: str) -> None:
        self._tally.refused += 1
        extra = {"measurement": record["measurement"], "tags": record["tags"], "reason": reason}
        logger.error("a record is refused", extra=extra)

    def _wait(self, seconds: float, error: Exception) -> None:
        logger.warning(
            "the service does not store", extra={"reason": str(error), "again_in_seconds": seconds}
        )
        self._tally.retries += 1
        self._pause(seconds)

    def _pause(self, seconds: float) -> None:
        if self._stopping.wait(max(0.0, seconds)):
            raise Stopped


def _is_refusal(error: ApiError) -> bool:
    """Returns true if the service refuses the records. A 400 may also come from a proxy."""
    return error.code in _REFUSALS or (
        error.status == HTTPStatus.UNPROCESSABLE_ENTITY
        and isinstance(error.body, dict)
        and isinstance(error.body.get("detail"), list)
    )


def _is_before(error: ApiError) -> bool:
    """Returns true if no record of a write with this answer was stored."""
    is_client_error = error.status // 100 == HTTPStatus.BAD_REQUEST // 100
    is_ours = error.code is not None or _is_refusal(error)
    return (is_client_error and is_ours) or error.write_outcome == "none"


def _seconds_of(error: ApiError, pause: float) -> float:
    """Seconds to wait after an answer: the answer's number, or long if an operator must help."""
    if error.retry_after_seconds is not None:
        return error.retry_after_seconds
    return pause if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR else _NOT_ALLOWED_SECONDS
