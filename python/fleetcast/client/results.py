"""Results of a writer: batches that were refused, and counts of all records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fleetcast.client.records import decode_records


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
        """The records, times as nanoseconds since 1970.

        Raises `ValueError` where a file of the spool was damaged.
        """
        return decode_records(self.request)


@dataclass(frozen=True)
class Tally:
    """Fate of all records written so far, by count; `resent_batches` counts sendings.

    `unreadable_batches` counts files of the spool that were set aside.
    """

    accepted: int = 0
    rejected: int = 0
    refused: int = 0
    resent_batches: int = 0
    unreadable_batches: int = 0
