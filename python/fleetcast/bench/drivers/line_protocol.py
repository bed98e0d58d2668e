"""Any server that takes line protocol by HTTP. The measurement only writes to it.

Options are `url`, `token` or `key`, and `command`. `command` starts the server in its folder, so
that its CPU, its files and its process are known.

Example of `url`: `http://127.0.0.1:8086/write?db=bench&precision=ns`.
"""

from __future__ import annotations

import http.client
import shlex
import socket
import subprocess
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from fleetcast.bench.driver import Fields, ProgramDriver, Samples
from fleetcast.bench.faults import DatabaseFault
from fleetcast.bench.processes import bytes_below, wait_until
from fleetcast.bench.texts import lines
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from urllib.parse import SplitResult

    from fleetcast.bench.driver import Session
    from fleetcast.bench.rows import SentRow

_GOOD = {200, 202, 204}
_TIMEOUT_SECONDS = 60.0


class LineProtocol(ProgramDriver):
    """A server at a URL."""

    about = "line protocol over HTTP"
    reads: ClassVar[bool] = False

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        super().__init__(folder, options)
        if "url" not in options:
            message = "lines needs the address of the server's writes: lines:url=http://…"
            raise OperatorError(message)
        self._url = urlsplit(options["url"])

    def encode(self, rows: Sequence[SentRow]) -> object:
        return lines(rows)

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if "command" in self.options:
            log = self.folder.with_suffix(".log")
            with log.open("ab") as output:
                self.program = subprocess.Popen(
                    shlex.split(self.options["command"]),
                    cwd=self.folder,
                    stdout=output,
                    stderr=output,
                )
            wait_until(self._answers, self.program, log)

    def _answers(self) -> bool:
        with socket.socket() as wire:
            return wire.connect_ex((self._url.hostname or "", self._url.port or 80)) == 0

    def connect(self) -> Session:
        headers = {}
        if "token" in self.options:
            headers["Authorization"] = f"Token {self.options['token']}"
        if "key" in self.options:
            headers["x-api-key"] = self.options["key"]
        return LineSession(self._url, headers)

    def settle(self) -> None:
        """Does not change the server: the protocol has no request for this."""

    def stored_bytes(self) -> int | None:
        return (bytes_below(self.folder) if self.program else 0) or None


class LineSession:
    """One connection, which only writes."""

    def __init__(self, url: SplitResult, headers: Mapping[str, str]) -> None:
        self._path = f"{url.path}?{url.query}" if url.query else url.path
        self._headers = dict(headers)
        self._connection = http.client.HTTPConnection(
            url.hostname or "", url.port, timeout=_TIMEOUT_SECONDS
        )

    def write(self, payload: bytes) -> None:
        self._connection.request("POST", self._path, payload, self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status not in _GOOD:
            message = f"{answer.status} {text[:300]!r}"
            raise DatabaseFault(message)

    def newest(self, measurement: str, end_ns: int) -> dict[str, tuple[int, Fields]]:
        """Never called, because `reads` is false."""
        raise NotImplementedError

    def window(
        self, measurement: str, entities: Sequence[str], start_ns: int, end_ns: int
    ) -> Samples:
        """Never called, because `reads` is false."""
        raise NotImplementedError

    def close(self) -> None:
        self._connection.close()
