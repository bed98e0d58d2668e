"""The real service as a child process, and a client that speaks to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from fleetcast.config import Override
from fleetcast.config.sections import POSTGRESQL
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.making import make_data_directory
from fleetcast.installation.opening import opened
from tests.service.wires import wires_to
from tests.waiting import PATIENCE_SECONDS, is_readable, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fleetcast.accounts.keys import IssuedKey
    from fleetcast.engine import Tenant
    from fleetcast.installation.opening import Installation
    from tests.service.wires import Wire

FLEETCAST = [sys.executable, "-m", "fleetcast"]
# Tests send many requests, and bad keys, from one address.
UNLIMITED = ("--set", "limits.requests_per_minute=0", "--set", "limits.lockout_failures=0")
ENVIRONMENT = "sandbox"
ALL_SCOPES = ("telemetry:write", "topology:read", "predictions:read")


def command(data: Path, *arguments: str) -> dict:
    """Runs a command to its end and reads its JSON answer."""
    run = subprocess.run(
        [*FLEETCAST, *arguments, "--data", str(data), "--json"],
        capture_output=True,
        check=False,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout or "null")


def create_key(data: Path, tenant: str, *options: str, scopes: Sequence[str] = ALL_SCOPES) -> str:
    arguments = [argument for scope in scopes for argument in ("--scope", scope)]
    return command(data, "key", "create", tenant, *arguments, *options)["key"]


def children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # the process has ended meanwhile
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # or one thread of it
                found += [int(child) for child in path.read_text().split()]
    return found


def whole_lines(file: Path) -> list[str]:
    """Lines of a file that grows; the last one may have been written in part."""
    whole, _, _ = file.read_text().rpartition("\n")
    return whole.splitlines()


def kill(pid: int) -> None:
    """kill -9 of a process; returns when it has ended."""
    with contextlib.suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(process, signal.SIGKILL)
            assert is_readable(process)
        finally:
            os.close(process)


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class Service:
    """A running `fleetcast serve`."""

    process: subprocess.Popen
    ready: dict
    key: str
    address: str = field(init=False)
    _wire: Wire | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.address = urlsplit(self.ready["http"]).netloc

    def connect(self, version: int = 11) -> http.client.HTTPConnection:
        """Connects. The front answers version 11, HTTP/1.1; the application answers version 10."""
        wire = http.client.HTTPConnection(self.address, timeout=PATIENCE_SECONDS)
        wire._http_vsn, wire._http_vsn_str = version, f"HTTP/{version / 10}"
        return wire

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = "",
        connection: http.client.HTTPConnection | None = None,
    ) -> Answer:
        """One request; `key=None` sends none, the default is the service's own.

        It has a connection of its own, unless it is to one of `each_worker`.
        """
        fields = dict(headers or {})
        if key is not None:
            fields["x-api-key"] = key or self.key
        wire = connection or self._wire or self.connect()
        wire.request(method, path, body=body, headers=fields)
        response = wire.getresponse()
        answer = Answer(response.status, response.headers, response.read())
        if wire not in {connection, self._wire}:
            wire.close()
        return answer

    def each_worker(self) -> Iterator[Service]:
        """The service as each worker of HTTP is it: the same one answers all requests."""
        with wires_to(lambda: self.workers("http"), self.address) as wires:
            for wire in wires:
                one = copy(self)
                one._wire = wire
                yield one

    def get(self, path: str, *, key: str | None = "", **parameters: object) -> Answer:
        query = urlencode(parameters, doseq=True)
        return self.request("GET", f"{path}?{query}" if query else path, key=key)

    def post(self, records: object, **options: object) -> Answer:
        body = records if isinstance(records, bytes) else json.dumps(records).encode()
        headers = {"content-type": "application/json"}
        return self.request("POST", "/telemetry", body=body, headers=headers, **options)

    def processes(self) -> list[int]:
        """Every process of the service, the supervisor first."""
        found = [self.process.pid]
        for parent in found:
            found += children(parent)
        return found

    def arbiter(self, child: str) -> int:
        """The process of a child that started its workers; one killed is first started again."""

        def look() -> int | None:
            for pid in children(self.process.pid):
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    command = Path(f"/proc/{pid}/cmdline").read_text()
                    if f"fleetcast.supervisor.{child}_child" in command:
                        return pid
            return None

        return until(look)

    def workers(self, child: str) -> list[int]:
        """Those that an arbiter has started; where all were killed, one is first started again."""
        return until(lambda: children(self.arbiter(child)))

    def kill_child(self, child: str) -> None:
        """kill -9 of a child; returns when it has ended, so that the next one found is another."""
        kill(self.arbiter(child))

    def kill(self) -> None:
        """kill -9 of everything, the supervisor first."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def end(self) -> None:
        """Stops it, where nothing else has ended it."""
        if self.process.poll() is None:
            self.stop()
        else:
            self.wait()

    def wait(self) -> int:
        """Waits for the supervisor's end; returns its exit code."""
        code = self.process.wait(timeout=PATIENCE_SECONDS)
        self.process.stdout.close()
        return code


def ask(service: Service, path: str, method: str = "GET", host: str | None = None) -> Answer:
    """One request to the private listener."""
    address = urlsplit(service.ready["admin"]).netloc
    wire = http.client.HTTPConnection(address, timeout=PATIENCE_SECONDS)
    with closing(wire):
        wire.request(method, path, headers={"Host": host or address})
        response = wire.getresponse()
        return Answer(response.status, response.headers, response.read())


def start(data: Path, key: str, *options: str, within: Sequence[str] = ()) -> Service:
    """Starts the service on free ports and waits for its ready line.

    `within` is what the command begins with, of a network namespace say.
    """
    arguments = ["serve", "--data", str(data), "--http", "127.0.0.1:0", "--grpc", "off"]
    arguments += ["--admin", "off", *UNLIMITED, *options]
    with (data / "serve.log").open("ab") as log:
        command = [*within, *FLEETCAST, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
    line = process.stdout.readline()
    assert line, (data / "serve.log").read_text()[-2000:]
    return Service(process, json.loads(line), key)


def new_objects() -> str:
    """Address of an object store without objects: a prefix of its own in the bucket of the run."""
    bucket, _, options = os.environ["OBJECTS"].partition("?")
    return f"{bucket}/{secrets.token_hex(8)}?{options}"


def shared_store() -> list[Override]:
    """Settings of a store that many nodes share: a schema and objects of its own."""
    url, _, _ = os.environ["DATABASE"].partition("?")
    given = {
        "backend": POSTGRESQL,
        "database": f"{url}?sslmode=disable&options=-csearch_path%3Dt{secrets.token_hex(8)}",
        "objects": new_objects(),
    }
    return [Override(f"store.{name}", text, "a test") for name, text in given.items()]


def new_tenant(installation: Installation, name: str) -> tuple[Tenant, IssuedKey]:
    """Creates a tenant, and a key for everything."""
    account = installation.tenants.create(name)
    return account, installation.keys.create(name, scopes=ALL_SCOPES, environment=ENVIRONMENT)


def create_tenant(data: Path, tenant: str = "acme") -> str:
    """Creates a tenant, and returns a key for everything."""
    with opened(DataDirectory(data), os.environ) as installation:
        _, issued = new_tenant(installation, tenant)
    return str(issued.text)


def prepare(data: Path, tenant: str = "acme") -> str:
    """A data directory with one tenant; returns a key for everything.

    Its stores are where `--backend` has those of the run.
    """
    store = shared_store() if os.environ.get("TEST_BACKEND") == POSTGRESQL else []
    make_data_directory(DataDirectory(data), ENVIRONMENT, os.environ, store=store)
    return create_tenant(data, tenant)


@contextmanager
def running(data: Path, *options: str) -> Iterator[Service]:
    service = start(data, prepare(data), *options)
    try:
        yield service
    finally:
        service.end()
