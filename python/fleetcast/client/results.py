"""Results of a writer: batches that were refused, and counts of all records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fleetcast.client.records import decode_records


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
