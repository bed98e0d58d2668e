"""fleetcast over HTTP: `POST /telemetry`, JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.bench.drivers.fleetcast_service import RunningService, ServiceSession
from fleetcast.bench.texts import json_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.bench.rows import SentRow


class HttpWrites(RunningService):
    """Writes that are answered once the batch is on disk."""

    about = "fleetcast over HTTP, JSON, its defaults"

    def encode(self, rows: Sequence[SentRow]) -> object:
        return json_body(rows)

    def connect(self) -> ServiceSession:
        return self.reader()
