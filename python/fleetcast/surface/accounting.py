"""Accounts of requests: counters, usage and the access log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleetcast.log_lines import write_served
from fleetcast.metrics import Requests

if TYPE_CHECKING:
    from fleetcast.log_lines import Served
    from fleetcast.metrics import Counters


class Accounting:
    """Counts and logs the requests of one surface, `http` or `grpc`."""

    def __init__(self, surface: str, counters: Counters) -> None:
        self._counters = counters
        self._requests = Requests(counters, surface)

    def begin(self) -> float:
        """Counts a request as under way, and returns the instant at which it began."""
        self._counters.add(self._requests.in_flight)
        return time.perf_counter()

    def interrupt(self) -> None:
        """Forgets a request that is not whole yet. It begins again when it is whole."""
        self._counters.add(self._requests.in_flight, -1)

    def end(self, served: Served, account_id: str | None) -> None:
        """Counts and logs a request that has its answer, for its account if that is known."""
        self._counters.add(self._requests.in_flight, -1)
        self.count(served, account_id)

    def count(self, served: Served, account_id: str | None, *, is_over_share: bool = False) -> None:
        """Counts and logs a request as `end` does. Another part has counted it as under way.

        `is_over_share` is true for a refusal because a tenant, or an address, held its share.
        """
        tenant, key_id = served.tenant, served.key_id
        refused_key = None if tenant is None or key_id is None else (tenant, key_id)
        of = self._requests.indexes(
            *(served.method, served.route, served.status, account_id, served.error),
            refused_key,
            is_over_share,
        )
        ones = [(index, 1) for index in of.counts]
        self._counters.add_all([*ones, *of.seconds.changes(served.seconds)])
        write_served(served)

    def refuse(self, served: Served) -> None:
        """Counts and logs a message that was refused before it was a request."""
        code = str(served.error)
        indexes = self._requests.refusal(served.method, served.route, served.status, code)
        self._counters.add_all((index, 1) for index in indexes)
        write_served(served)
