"""Counts and logs calls that have ended, except writes that were stored."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from fleetcast.engine import GrpcNotice, SecretText
from fleetcast.log_lines import Served
from fleetcast.logs import audit_refusal
from fleetcast.metrics import Writes
from fleetcast.surface.accounting import Accounting

if TYPE_CHECKING:
    from fleetcast.engine import EndedCall, GrpcFront
    from fleetcast.grpc.services import GrpcServices

_PAUSE_SECONDS = 1.0

logger = logging.getLogger(__name__)


class EndedCalls:
    """Takes the events of a front in a thread. A call is answered after it is counted."""

    def __init__(self, services: GrpcServices, front: GrpcFront) -> None:
        self._front = front
        self._accounting = Accounting("grpc", services.counters)
        self._writes = Writes(services.counters, "grpc")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="grpc-ended", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Returns true while the thread takes events, which refused calls wait for."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Takes the last events and ends the thread. The front must have stopped before."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for event in self._front.next_events(_PAUSE_SECONDS):
                try:
                    self._note(event)
                except Exception:
                    logger.exception("a call could not be counted")
        self._front.next_events(0.0)

    def _note(self, event: EndedCall | GrpcNotice) -> None:
        if isinstance(event, GrpcNotice):
            level = logging.INFO if event.problem is None else logging.WARNING
            logger.log(level, event.event, extra={"problem": event.problem})
            return
        account, tenant, key_id = event.identity or (None, None, None)
        self._accounting.count(
            Served(
                event.request_id,
                "grpc",
                event.route,
                event.status,
                event.error,
                tenant,
                key_id,
                event.client,
                event.seconds,
                bytes_in=event.bytes_in,
                bytes_out=event.bytes_out,
                process="grpc",
            ),
            account,
            is_over_share=event.is_over_share,
        )
        self._tell(event, tenant)

    def _tell(self, event: EndedCall, tenant: str | None) -> None:
        """Logs details that a line of the access log does not have."""
        if event.fault is not None:
            logger.error(event.fault, extra={"request_id": event.request_id})
        if event.bad_key is not None:
            text = SecretText.read("key", event.bad_key)
            audit_refusal(
                "authentication failed",
                request_id=event.request_id,
                client=event.client,
                key_id=text and text.id,
                transport="grpc",
            )
        if event.bound is not None and tenant is not None:
            self._writes.tenant_full(tenant, event.bound)
