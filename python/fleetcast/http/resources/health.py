"""`/health` and its three subsystems: every call asks the dependencies anew, for 1 s at most."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from fleetcast.http.answers import encode
from fleetcast.surface.error_codes import RETRY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    import falcon

    from fleetcast.surface.services import Probe

_PING_SECONDS = 1.0
_PROBE_THREADS = 4  # a probe that hangs keeps its thread; the others must not wait behind it

logger = logging.getLogger(__name__)


class Liveness:
    """200 whenever the process serves traffic."""

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        """Asks nobody."""
        response.data = encode({"status": "ok", "checks": {}})

    on_head = on_get


class Subsystem:
    """200 when every dependency answers in time, else 503. What is wrong goes to the log only."""

    def __init__(self, name: str, probes: Mapping[str, Probe]) -> None:
        self._probes = probes
        self._pool = ThreadPoolExecutor(_PROBE_THREADS, thread_name_prefix=f"health-{name}")

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        """Asks all dependencies side by side."""
        until = time.monotonic() + _PING_SECONDS
        asked = {name: self._pool.submit(probe) for name, probe in self._probes.items()}
        checks = {name: _check(name, future, until) for name, future in asked.items()}
        healthy = all(check["ok"] for check in checks.values())
        response.status = 200 if healthy else 503
        if not healthy:
            response.set_header("Retry-After", str(RETRY_SECONDS))
        response.data = encode({"status": "ok" if healthy else "degraded", "checks": checks})

    on_head = on_get


def _check(name: str, future: Future[None], until: float) -> dict[str, object]:
    try:
        future.result(timeout=max(until - time.monotonic(), 0.0))
    except Exception as error:  # noqa: BLE001 - whatever it raises, it is not well
        logger.warning("health check %s failed: %r", name, error)
        return {"ok": False, "detail": "unavailable"}
    return {"ok": True, "detail": "ok"}
