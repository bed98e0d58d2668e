"""Accounts of requests that the parser refused. They have no known path, and took no time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.log_lines import Served, write_served
from fleetcast.metrics.surfaces import OTHER
from fleetcast.surface.accounting import Accounting

if TYPE_CHECKING:
    from fleetcast.http.server.whole_answer import WholeAnswer
    from fleetcast.metrics import Counters


class MalformedRequests:
    """Counts and logs malformed requests; `process` names the process in the access log."""

    def __init__(self, counters: Counters, process: str) -> None:
        self._process = process
        self._accounting = Accounting("http", counters, write_served)

    def note(self, address: str, answer: WholeAnswer) -> None:
        """Counts and logs the answer to a peer at `address`."""
        self._accounting.refuse(
            Served(
                answer.request_id,
                OTHER,
                OTHER,
                answer.status,
                answer.code,
                None,
                None,
                address,
                0.0,
                bytes_in=0,
                bytes_out=len(answer.body),
                process=self._process,
            )
        )
