"""The service and a Prometheus with the same samples."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from fleetcast.bench.processes import free_port
from tests.integrations.programs import answers
from tests.service.service import prepare, start
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MESSAGE = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
LISTENER = ("--set", "adapters.address=127.0.0.1:0")


class Server:
    """A server that speaks Prometheus' HTTP API, on one connection."""

    def __init__(self, address: str, headers: dict[str, str], pid: int) -> None:
        self._wire = HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE_SECONDS)
        self._headers = headers
        self.pid = pid

    def _post(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        self._wire.request("POST", path, body, {**self._headers, **headers})
        answer = self._wire.getresponse()
        return answer.status, answer.read()

    def close(self) -> None:
        self._wire.close()

    def write(self, body: bytes) -> None:
        assert self._post("/api/v1/write", body, MESSAGE) == (204, b"")

    def read(self, body: bytes) -> bytes:
        """The answer to a remote read."""
        status, answer = self._post("/api/v1/read", body, MESSAGE)
        assert status == 200, answer
        return answer

    def send(self, path: str, **parameters: str) -> tuple[int, bytes]:
        """Status and text of the answer to a form."""
        return self._post(path, urlencode(parameters).encode(), FORM)

    def ask(self, path: str, **parameters: str) -> dict[str, Any]:
        """The answer to a form."""
        status, text = self.send(path, **parameters)
        try:
            return json.loads(text)
        except ValueError:
            return {"status": "error", "errorType": f"http {status}", "error": text.decode()}


@contextmanager
def prometheus(program: str, folder: Path, config: str = "global: {}\n") -> Iterator[Server]:
    """Prometheus without targets that takes remote write."""
    (folder / "prometheus.yml").write_text(config)
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{port}",
                "--web.enable-remote-write-receiver",
            ],
            stderr=log,
        )
    try:
        until(lambda: answers(port))
        with closing(Server(f"http://127.0.0.1:{port}", {}, process.pid)) as server:
            until(lambda: server.ask("/api/v1/query", query="1")["status"] == "success")
            yield server
    finally:
        process.terminate()
        process.wait()


@contextmanager
def service(folder: Path) -> Iterator[Server]:
    key = prepare(folder)
    running = start(folder, key, *LISTENER)
    try:
        address, headers = running.ready["adapters"], {"x-api-key": key}
        with closing(Server(address, headers, running.process.pid)) as server:
            yield server
    finally:
        running.stop()


@contextmanager
def both(program: str, folder: Path, bodies: Iterable[bytes]) -> Iterator[tuple[Server, Server]]:
    """The service and Prometheus, after both took the bodies."""
    folders = [folder / name for name in ("ours", "theirs")]
    for each in folders:
        each.mkdir(parents=True)
    with service(folders[0]) as ours, prometheus(program, folders[1]) as theirs:
        for body in bodies:
            ours.write(body)
            theirs.write(body)
        yield ours, theirs


def now_ms() -> int:
    return int(time.time() * 1000)
