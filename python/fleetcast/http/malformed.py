"""Accounts of requests that the parser refused: nobody knows what they ask for, nobody waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.http.server.framing import HEAD_END
from fleetcast.log_lines import Served
from fleetcast.metrics.surfaces import OTHER
from fleetcast.surface.accounting import Accounting

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.http.server.framing import Malformed
    from fleetcast.metrics import Counters


class MalformedRequests:
    """Counts and logs them."""

    def __init__(self, counters: Counters, access_log: Callable[[Served], None]) -> None:
        self._accounting = Accounting("http", counters, access_log)

    def note(self, peer: object, malformed: Malformed) -> None:
        """Counts and logs one; `peer` is the address of its socket."""
        self._accounting.refuse(
            Served(
                malformed.request_id,
                OTHER,
                OTHER,
                malformed.status,
                malformed.code,
                None,
                None,
                str(peer[0]) if isinstance(peer, tuple) else "",
                0.0,
                bytes_in=0,
                bytes_out=len(malformed.answer.partition(HEAD_END)[2]),
                process="http",
            )
        )
