"""Accounts of requests that the parser refused. They have no known path, and took no time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.log_lines import Served
from fleetcast.metrics.surfaces import OTHER
from fleetcast.surface.accounting import Accounting

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.http.server.whole_answer import WholeAnswer
    from fleetcast.metrics import Counters


def malformed_requests(counters: Counters, process: str) -> Callable[[str, WholeAnswer], None]:
    """Returns a function that counts and logs the answer to a peer.

    `process` names the process in the access log.
    """
    accounting = Accounting("http", counters)

    def note(address: str, answer: WholeAnswer) -> None:
        request = answer.request_id, OTHER, OTHER, answer.status, answer.code
        accounting.refuse(Served(*request, None, None, address, 0.0, 0, len(answer.body), process))

    return note
