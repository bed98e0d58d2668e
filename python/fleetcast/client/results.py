"""Results of a writer: batches that were refused, and counts of all records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fleetcast.client.records import decode_records, split

_REASONS = {
    "UNAUTHENTICATED": "the service does not know this key, or the key has ended",
    "PERMISSION_DENIED": "the key lacks the scope telemetry:write, or its tenant may not write",
    "UNCERTAIN": "the connection was lost or time ran out, and the records may be stored",
}


@dataclass(frozen=True)
class RefusedBatch:
    """Records that the server will never take as they are, and the reason.

    `status` and `details` are from the server. If `uncertain` is true, the records may be stored:
    see `GatewayWriter` and `Options.resend_uncertain`.

    Example: `status` is `INVALID_ARGUMENT` and `details` is `invalid_input:tags`.
    """

    request: bytes
    status: str
    details: str
    uncertain: bool = False

    def __repr__(self) -> str:
        try:
            count = f"{len(split(self.request))} records"
        except ValueError:
            count = "unreadable"
        return f"RefusedBatch({count}, {self.reason!r})"

    @property
    def reason(self) -> str:
        """The reason in words. Example: `INVALID_ARGUMENT: invalid_input:tags`."""
        words = _REASONS.get("UNCERTAIN" if self.uncertain else self.status)
        said = f"{self.status}: {self.details}"
        return f"{said} ({words})" if words else said

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records; times are nanoseconds since 1970.

        Raises `ValueError` if the batch comes from a damaged file of the spool.
        """
        return decode_records(self.request)


@dataclass(frozen=True)
class Tally:
    """Counts of all records written so far, by their fate.

    `resent_batches` counts how often a batch was sent again. `unreadable_batches` counts the files
    of the spool that were set aside.

    Example: `accepted=990, rejected=7, refused=3` accounts for 1,000 records.
    """

    accepted: int = 0
    rejected: int = 0
    refused: int = 0
    resent_batches: int = 0
    unreadable_batches: int = 0
