"""`/health` and its three subsystems. Every call asks the dependencies again, for one second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.http.answers import encode
from fleetcast.surface.error_codes import RETRY_SECONDS
from fleetcast.surface.readiness import Dependencies, well

if TYPE_CHECKING:
    from collections.abc import Mapping

    import falcon

    from fleetcast.surface.readiness import Probe

_PING_SECONDS = 1.0


class SubsystemResource:
    """Answers 200 if every dependency of a subsystem answers in time, else 503.

    Without dependencies, as for `/health`, it answers 200 as long as the process serves.
    """

    def __init__(self, probes: Mapping[str, Probe]) -> None:
        self._dependencies = Dependencies(probes)

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        """Asks all dependencies at the same time."""
        answers = well(self._dependencies.ask(), _PING_SECONDS)
        healthy = all(answers.values())
        checks = {
            name: {"ok": ok, "detail": "ok" if ok else "unavailable"}
            for name, ok in answers.items()
        }
        response.status = 200 if healthy else 503
        if not healthy:
            response.set_header("Retry-After", str(RETRY_SECONDS))
        response.data = encode({"status": "ok" if healthy else "degraded", "checks": checks})

    on_head = on_get
