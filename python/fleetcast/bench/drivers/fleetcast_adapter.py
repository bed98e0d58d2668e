"""fleetcast by line protocol over HTTP: `/write` of its adapter listener; reads over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fleetcast.bench.drivers.fleetcast_service import RunningService, SplitSession
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

    def connect(self) -> SplitSession:
        url = urlsplit(f"{self.ready['adapters']}/write?precision=ns")
        return SplitSession(LineSession(url, {"x-api-key": self.key}), self.reader())
