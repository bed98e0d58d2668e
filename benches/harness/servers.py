"""The service and the body-only handler as child processes, and clients that drive them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from benches.harness.child import module
from benches.harness.load_client import grpc_client, http_client
from benches.harness.measure import cpu_seconds_of, with_children, written_bytes_of
from benches.harness.paths import ROOT
from benches.inputs import sent
from tests.service import service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benches.harness.child import Child

_LAST_CHUNK = b"\r\n0\r\n\r\n"  # JSON has no line ends of its own

WORKERS = 2
THREADS = 4
CONNECTIONS = 4
TENANTS = ("wide", "hour", "grpc", "stations", "messages-1000", "messages-10000")
_REST_SECONDS = 1.2  # it looks once a second
_IDLE_CPU_SECONDS = 0.02


class Driven:
    """A server and the client process that drives it."""

    def __init__(self, process: int, client: Child) -> None:
        processes = with_children(process)
        self._maintenance = [each for each in processes if is_maintenance(each)]
        self._serving = [each for each in processes if each not in self._maintenance]
        self._maintained = cpu_seconds_of(self._maintenance)
        self._client = client
        self.requests = 0
        """Requests that were answered so far."""

    def drive(self, connections: int, seconds: float, period_seconds: float | None = None) -> dict:
        """The client's figures, and `server_cpu_seconds` of all but the maintenance.

        Each connection sends when it was answered, or every `period_seconds`.
        """
        before = cpu_seconds_of(self._serving)
        answer = self._client.ask(
            connections=connections, seconds=seconds, period_seconds=period_seconds
        )
        assert answer["statuses"].keys() <= {"202", "0"}, answer["statuses"]
        assert not answer["broken"], answer
        self.requests += answer["requests"]
        return {**answer, "server_cpu_seconds": cpu_seconds_of(self._serving) - before}

    def compaction_cpu_seconds(self) -> float:
        """Waits until the maintenance rests; its CPU since this was made."""
        used = cpu_seconds_of(self._maintenance)
        while True:
            time.sleep(_REST_SECONDS)
            before, used = used, cpu_seconds_of(self._maintenance)
            if used - before <= _IDLE_CPU_SECONDS:
                return used - self._maintained

    def compaction_bytes(self) -> int:
        """Bytes that the maintenance has sent to devices since it was started."""
        return sum(written_bytes_of(process) for process in self._maintenance)

    def close(self) -> None:
        self._client.close()


def is_maintenance(process: int) -> bool:
    return b"maintenance_child" in Path(f"/proc/{process}/cmdline").read_bytes()


def http_driven(process: int, address: str, key: str, name: str = sent.AGAIN) -> Driven:
    """Bodies of a stream to `POST /telemetry`."""
    return Driven(process, http_client(address, "/telemetry", key, sent.SENT[name]()))


def grpc_driven(process: int, ready: dict, key: str, stream: sent.Stream) -> Driven:
    """Messages of a stream to `Write`."""
    return Driven(process, grpc_client(ready["grpc"], ready["grpc_ca"], key, stream))


@contextmanager
def running_service(
    data: Path, site: Path | None = None
) -> Iterator[tuple[service.Service, dict[str, str]]]:
    """The service with two workers; keys of the tenants that the figures need.

    `site` holds the package of another version, as `tools/before` makes it.
    """
    data.mkdir(parents=True)
    options = ["--workers", str(WORKERS), "--threads", str(THREADS), "--grpc", "127.0.0.1:0"]
    with package(site):
        keys = {"writes": service.prepare(data, "writes")}
        for tenant in (*TENANTS, *sent.SENT):
            service.command(data, "tenant", "create", tenant)
            keys[tenant] = service.create_key(data, tenant)
        running = service.start(data, keys["writes"], *options)
    try:
        yield running, keys
    finally:
        running.stop()


@contextmanager
def package(site: Path | None) -> Iterator[None]:
    """Programs that are started meanwhile import the package of a folder, if there is one."""
    before = os.environ.get("PYTHONPATH")
    if site is not None:
        os.environ["PYTHONPATH"] = str(site)
    try:
        yield
    finally:
        if before is not None:
            os.environ["PYTHONPATH"] = before
        elif site is not None:
            del os.environ["PYTHONPATH"]


@contextmanager
def running_body_only() -> Iterator[tuple[int, str]]:
    """Process and address of the handler that only reads bodies."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        fd = listener.fileno()
        process = subprocess.Popen(
            module("benches.harness.http_noop", str(fd), str(WORKERS), str(THREADS)),
            cwd=ROOT,
            pass_fds=[fd],
            stdout=subprocess.PIPE,
        )
        address = "{}:{}".format(*listener.getsockname())
        for _ in range(WORKERS):
            process.stdout.readline()
    try:
        yield process.pid, address
    finally:
        process.terminate()
        process.wait()


@contextmanager
def running_noop() -> Iterator[tuple[int, dict]]:
    """Process and ready line of the gRPC handler that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        service.command(Path(folder) / "data", "init")
        process = subprocess.Popen(
            module("benches.harness.grpc_noop", f"{folder}/data"),
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        try:
            yield process.pid, json.loads(process.stdout.readline())
        finally:
            process.terminate()
            process.wait()


def _joined(chunks: bytes) -> bytes:
    """A body that came in chunks."""
    pieces = []
    while True:
        size, _, chunks = chunks.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            return b"".join(pieces)
        pieces.append(chunks[:length])
        chunks = chunks[length + 2 :]


class Getter:
    """One connection for reads, whose answers land in a buffer that is used again."""

    def __init__(self, address: str, key: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._fields = f"Host: {address}\r\nX-Api-Key: {key}\r\n\r\n"
        self._buffer = bytearray(64 << 20)
        self.body = memoryview(b"")

    def get(self, path: str, **parameters: object) -> float:
        """Seconds until the last byte of the answer is here."""
        query = urlencode(parameters, doseq=True, quote_via=quote)
        request = f"GET {path}?{query} HTTP/1.1\r\n{self._fields}".encode()
        view = memoryview(self._buffer)
        start = time.perf_counter()
        self._socket.sendall(request)
        filled = head_end = 0
        while not head_end:
            filled += self._socket.recv_into(view[filled:])
            found = self._buffer.find(b"\r\n\r\n", 0, filled)
            head_end = found + 4 if found >= 0 else 0
        head = bytes(view[:head_end]).lower()
        assert b" 200 " in head, bytes(view[:filled])
        if b"transfer-encoding: chunked" in head:
            while not self._buffer.endswith(_LAST_CHUNK, head_end, filled):
                filled += self._socket.recv_into(view[filled:])
            seconds = time.perf_counter() - start
            self.body = memoryview(_joined(bytes(view[head_end:filled])))
            return seconds
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        while filled < head_end + length:
            filled += self._socket.recv_into(view[filled:])
        seconds = time.perf_counter() - start
        self.body = view[head_end : head_end + length]
        return seconds

    def close(self) -> None:
        self._socket.close()
