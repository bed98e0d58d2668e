"""QuestDB by line protocol over HTTP, its defaults, and read by SQL."""

from __future__ import annotations

import http.client
import json
import shlex
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode, urlsplit

from fleetcast.bench.drivers.fleetcast_service import SplitSession
from fleetcast.bench.drivers.line_protocol import LineProtocol, LineSession
from fleetcast.bench.faults import DatabaseFault
from fleetcast.bench.processes import free_port
from fleetcast.bench.rows import ENTITY
from fleetcast.bench.truth import WEEK_NS
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fleetcast.bench.driver import Fields, Samples
    from fleetcast.bench.rows import RowNames

_TIMEOUT_SECONDS = 60.0
_OFF = ("http.min.enabled", "pg.enabled", "line.tcp.enabled", "telemetry.enabled")


class QuestDb(LineProtocol):
    """A server with a table for each measurement. The option `jar` is its program."""

    about = "QuestDB by line protocol over HTTP, its defaults"
    reads: ClassVar[bool] = True

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        if "jar" not in options:
            message = "questdb needs its program: questdb:jar=FILE"
            raise OperatorError(message)
        self._port = free_port()
        java = ["java", "-p", options["jar"], "-m", "io.questdb/io.questdb.ServerMain", "-d", "."]
        url = f"http://127.0.0.1:{self._port}/write?precision=n"
        super().__init__(folder, {"url": url, "command": shlex.join(java)})

    def start(self) -> None:
        config = self.folder / "conf" / "server.conf"
        config.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"http.bind.to=127.0.0.1:{self._port}", *(f"{name}=false" for name in _OFF)]
        config.write_text("\n".join(lines) + "\n")
        super().start()
        with closing(self._reader()) as reader:
            for measurement, fields in self.names.fields.items():
                tags = "".join(f", {_quoted(tag)} SYMBOL" for tag in self.names.tags)
                numbers = "".join(f", {_quoted(field)} DOUBLE" for field in fields)
                reader.ask(
                    f"CREATE TABLE IF NOT EXISTS {_quoted(measurement)} "
                    f"(timestamp TIMESTAMP_NS{tags}{numbers}) "
                    "TIMESTAMP(timestamp) PARTITION BY DAY WAL"
                )

    def connect(self) -> SplitSession:
        """Rows are seen by reads once the log is applied."""
        self.settle()
        writer = LineSession(urlsplit(self.options["url"]), {})
        return SplitSession(writer, self._reader())

    def settle(self) -> None:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        with closing(self._reader()) as reader:
            while reader.ask("SELECT name FROM wal_tables() WHERE sequencerTxn > writerTxn"):
                if time.monotonic() > deadline:
                    message = "it does not apply its log"
                    raise DatabaseFault(message)
                time.sleep(0.02)

    def _reader(self) -> QuestDbReads:
        return QuestDbReads(self._port, self.names)


class QuestDbReads:
    """One connection to read; see `Session`."""

    def __init__(self, port: int, names: RowNames) -> None:
        self._names = names
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
        self.close = self._connection.close

    def newest(self, measurement: str, end_ns: int) -> dict[str, tuple[int, Fields]]:
        rows = self._rows(
            measurement, end_ns - WEEK_NS, end_ns, "", f" LATEST ON timestamp PARTITION BY {ENTITY}"
        )
        return {entity: (time_ns, fields) for entity, time_ns, fields in rows}

    def window(
        self, measurement: str, entities: Sequence[str], start_ns: int, end_ns: int
    ) -> Samples:
        texts = ", ".join("'" + entity.replace("'", "''") + "'" for entity in entities)
        found: Samples = {}
        chosen = f" AND {ENTITY} IN ({texts})"
        for entity, time_ns, fields in self._rows(measurement, start_ns, end_ns, chosen, ""):
            found.setdefault(entity, {})[time_ns] = fields
        return found

    def _rows(
        self, measurement: str, start_ns: int, end_ns: int, chosen: str, after: str
    ) -> list[tuple[str, int, Fields]]:
        names = self._names.fields[measurement]
        columns = "".join(f", {_quoted(name)}" for name in names)
        wanted = f"timestamp >= {start_ns} AND timestamp < {end_ns}{chosen}{after}"
        table = f"{_quoted(measurement)} WHERE {wanted}"
        answer = self.ask(f"SELECT {ENTITY}, timestamp::LONG{columns} FROM {table}")
        return [
            (entity, time_ns, {n: v for n, v in zip(names, row, strict=True) if v is not None})
            for entity, time_ns, *row in answer
        ]

    def ask(self, statement: str) -> list[list[Any]]:
        """Returns the rows of an answer."""
        self._connection.request("GET", "/exec?" + urlencode({"query": statement}))
        answer = json.loads(self._connection.getresponse().read())
        if "error" in answer:
            raise DatabaseFault(answer["error"])
        rows: list[list[Any]] = answer.get("dataset", [])
        return rows


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
