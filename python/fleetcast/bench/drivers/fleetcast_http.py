"""fleetcast over HTTP: `POST /telemetry`, JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.bench.drivers.fleetcast_service import TIMEOUT_SECONDS, RunningService, SplitSession
from fleetcast.bench.texts import json_body
from fleetcast.client.connection import RestingConnection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.bench.rows import SentRow


class HttpWrites(RunningService):
    """Writes that are answered once the batch is on disk."""

    about = "fleetcast over HTTP, JSON, its defaults"

    def encode(self, rows: Sequence[SentRow]) -> object:
        return json_body(rows)

    def connect(self) -> SplitSession:
        connection = RestingConnection(self.ready["http"], self.key, TIMEOUT_SECONDS)
        return SplitSession(_HttpWriter(connection), self.reader())


class _HttpWriter:
    """A connection to write."""

    def __init__(self, connection: RestingConnection) -> None:
        self._connection = connection
        self.close = connection.close

    def write(self, payload: bytes) -> None:
        self._connection.exchange("POST", "/telemetry", payload)
