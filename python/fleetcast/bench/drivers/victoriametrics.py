"""VictoriaMetrics by line protocol, its defaults, and read in Prometheus' language."""

from __future__ import annotations

import shlex
import shutil
import urllib.request
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from fleetcast.bench.drivers.fleetcast_service import SplitSession
from fleetcast.bench.drivers.line_protocol import LineProtocol, LineSession
from fleetcast.bench.drivers.promql_reads import TIMEOUT_SECONDS, PromqlReads
from fleetcast.bench.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class VictoriaMetrics(LineProtocol):
    """A single server that keeps rows of any age. The option `bin` is its program."""

    about = "VictoriaMetrics by line protocol, its defaults"
    reads: ClassVar[bool] = True

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        self._port = free_port()
        program = [
            options.get("bin") or shutil.which("victoria-metrics") or "victoria-metrics",
            "-storageDataPath=data",
            "-retentionPeriod=100y",
            f"-httpListenAddr=127.0.0.1:{self._port}",
        ]
        url = f"http://127.0.0.1:{self._port}/write"
        super().__init__(folder, {"url": url, "command": shlex.join(program)})

    def connect(self) -> SplitSession:
        """Rows are seen by reads some seconds after their answer, or after this request."""
        self.settle()
        writer = LineSession(urlsplit(self.options["url"]), {})
        newest_time = "tlast_over_time({selector}{span})"
        return SplitSession(writer, PromqlReads(self._port, self.names, newest_time))

    def settle(self) -> None:
        address = f"http://127.0.0.1:{self._port}/internal/force_flush"
        urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS).close()
