"""fleetcast over HTTP: `POST /telemetry`, JSON."""

from __future__ import annotations

from fleetcast.bench.drivers.fleetcast_service import RunningService, ServiceSession
from fleetcast.bench.texts import json_body


class HttpWrites(RunningService):
    """Writes that are answered once the batch is on disk."""

    about = "fleetcast over HTTP, JSON, its defaults"
    encode = staticmethod(json_body)

    def connect(self) -> ServiceSession:
        return self.reader()
