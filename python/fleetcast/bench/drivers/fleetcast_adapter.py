"""fleetcast by line protocol over HTTP: `/write` of its adapter listener; reads over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fleetcast.bench.drivers.fleetcast_service import RunningService, ServiceSession
from fleetcast.bench.drivers.line_protocol import LineSession
from fleetcast.bench.texts import lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.bench.rows import SentRow


class AdapterWrites(RunningService):
    """Writes that are answered once the batch is on disk."""

    about = "fleetcast by line protocol over HTTP, its defaults"
    listeners = ("--grpc", "off", "--set", "adapters.address=127.0.0.1:0")

    def encode(self, rows: Sequence[SentRow]) -> object:
        return lines(rows)

    def connect(self) -> AdapterSession:
        url = urlsplit(f"{self.ready['adapters']}/write?precision=ns")
        return AdapterSession(LineSession(url, {"x-api-key": self.key}), self.reader())


class AdapterSession:
    """A connection to write, and a connection to read."""

    def __init__(self, writer: LineSession, reader: ServiceSession) -> None:
        self._sessions = writer, reader
        self.write = writer.write
        self.newest = reader.newest
        self.window = reader.window

    def close(self) -> None:
        for session in self._sessions:
            session.close()
