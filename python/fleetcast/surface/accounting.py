"""Accounts of requests: counters, usage and the access log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleetcast.metrics import Requests

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.log_lines import Served
    from fleetcast.metrics import Counters


class Accounting:
    """Counts and logs the requests of one surface, `http` or `grpc`."""

    def __init__(
        self, surface: str, counters: Counters, access_log: Callable[[Served], None]
    ) -> None:
        self._requests = Requests(counters, surface)
        self._log = access_log

    def begin(self) -> float:
        """Counts a request as under way, and returns the instant at which it began."""
        self._requests.began()
        return time.perf_counter()

    def interrupt(self) -> None:
        """Forgets a request that is not whole yet. It begins again when it is whole."""
        self._requests.left()

    def end(self, served: Served, account_id: str | None) -> None:
        """Counts and logs a request that has its answer, for its account if that is known."""
        self._requests.left()
        self.count(served, account_id)

    def count(self, served: Served, account_id: str | None) -> None:
        """Counts and logs a request as `end` does. Another part has counted it as under way."""
        tenant, key_id = served.tenant, served.key_id
        self._requests.ended(
            served.method,
            served.route,
            served.status,
            served.seconds,
            code=served.error,
            account_id=account_id,
            refused_key=None if tenant is None or key_id is None else (tenant, key_id),
        )
        self._log(served)

    def over_share(self) -> None:
        """Counts a refusal because a tenant, or an address, held its share already."""
        self._requests.over_share()

    def refuse(self, served: Served) -> None:
        """Counts and logs a message that was refused before it was a request."""
        self._requests.refused(served.method, served.route, served.status, str(served.error))
        self._log(served)
