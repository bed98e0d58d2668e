"""What is kept of every call: counters, usage, and one line of the access log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleetcast.accounts.key_text import read_key_text
from fleetcast.logs import Served, audit
from fleetcast.metrics import Requests

if TYPE_CHECKING:
    from fleetcast.grpc.call import Call
    from fleetcast.grpc.services import GrpcServices


class Accounting:
    """Begins and ends with every call."""

    def __init__(self, services: GrpcServices) -> None:
        self._log = services.access_log
        self._requests = Requests(services.counters, "grpc")

    def begin(self) -> float:
        """Gives the instant for `end`."""
        self._requests.began()
        return time.perf_counter()

    def end(self, began: float, call: Call, status: str, details: str, sent_bytes: int) -> None:
        """The call has its status, `OK` or another; `details` are those of an error."""
        seconds = time.perf_counter() - began
        code = details.partition(":")[0] or None
        identity = call.identity
        account_id = None if identity is None else identity.account_id
        self._requests.ended("grpc", call.route, status, seconds, code=code, account_id=account_id)
        served = Served(
            call.request_id,
            "grpc",
            call.route,
            status,
            code,
            None if identity is None else identity.tenant_key,
            None if identity is None else identity.key_id,
            call.context.peer(),
            seconds,
            bytes_in=call.received_bytes,
            bytes_out=sent_bytes,
            process="grpc",
        )
        self._log(served)


def audit_failure(call: Call, key: str) -> None:
    """Notes a key that was sent and is no good, by its id alone."""
    text = read_key_text(key)
    audit(
        "authentication failed",
        request_id=call.request_id,
        client=call.context.peer(),
        key_id=None if text is None else text.key_id,
        transport="grpc",
    )
