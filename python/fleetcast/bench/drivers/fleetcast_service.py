"""The service in its own data directory, with reads over HTTP; subclasses add the writes."""

from __future__ import annotations

import http.client
import json
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode, urlsplit

from fleetcast.bench import processes
from fleetcast.bench.driver import Driver, Fields, Samples
from fleetcast.bench.faults import DatabaseFault
from fleetcast.bench.rows import NS_PER_SECOND, RowNames
from fleetcast.bench.truth import WEEK_NS
from fleetcast.engine import format_time, parse_time
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Sequence

_TENANT = "bench"
_ENTITIES_MAX = 16
_TIMEOUT_SECONDS = 60.0
_STOP_SECONDS = 60.0
# The workload comes from one address, and its rows are older than the service answers by default.
_SETTINGS = {
    "limits.requests_per_minute": 0,
    "limits.history_horizon_days": 36_500,
    "limits.raw_span_seconds": 31_536_000,
    "limits.point_budget": 1_000_000,
}


class ServiceSession:
    """One connection to the service."""

    def __init__(self, base: str, key: str, names: RowNames) -> None:
        url = urlsplit(base)
        self._connection = http.client.HTTPConnection(
            url.hostname or "", url.port, timeout=_TIMEOUT_SECONDS
        )
        self._names = names
        self._headers = {"x-api-key": key, "Content-Type": "application/json"}

    def write(self, payload: bytes) -> None:
        self._exchange("POST", "/telemetry", payload)

    def newest(self, measurement: str, end_ns: int) -> dict[str, tuple[int, Fields]]:
        parameters = {
            "measurement": measurement,
            "as_of_utc": format_time(end_ns),
            "freshness_seconds": WEEK_NS // NS_PER_SECOND,
        }
        answer = self._exchange("GET", f"/topology?{urlencode(parameters)}", None)
        return {
            each["entity_id"]: (parse_time(each["observed_at"]), each["fields"])
            for each in answer["entities"]
        }

    def window(
        self, measurement: str, entities: Sequence[str], start_ns: int, end_ns: int
    ) -> Samples:
        found: Samples = {}
        for first in range(0, len(entities), _ENTITIES_MAX):
            self._pages(
                measurement, entities[first : first + _ENTITIES_MAX], start_ns, end_ns, found
            )
        return found

    def _pages(
        self, measurement: str, entities: Sequence[str], start_ns: int, end_ns: int, found: Samples
    ) -> None:
        begin: str | None = format_time(start_ns)
        while begin is not None:
            parameters = {
                "entity_id": list(entities),
                "start": begin,
                "end": format_time(end_ns),
                "measurement": measurement,
                "fields": ",".join(self._names.fields[measurement]),
            }
            page = self._exchange(
                "GET", f"/topology/series?{urlencode(parameters, doseq=True)}", None
            )
            for one in page["series"]:
                _merge(one, found.setdefault(one["entity_id"], {}))
            begin = page.get("next_start") if page.get("truncated") else None

    def close(self) -> None:
        self._connection.close()

    def _exchange(self, method: str, path: str, body: bytes | None) -> Any:  # noqa: ANN401 - JSON
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status not in {200, 202}:
            message = f"{method} {path[:100]}: {answer.status} {text[:300]!r}"
            raise DatabaseFault(message)
        return json.loads(text)


def _merge(one: dict[str, Any], times: dict[int, Fields]) -> None:
    for at, time in enumerate(one["times"]):
        values = ((name, channel[at]) for name, channel in one["channels"].items())
        times[parse_time(time)] = {name: value for name, value in values if value is not None}


class RunningService(Driver):
    """`fleetcast serve` with default settings, except that clients have no rate limit."""

    listeners: ClassVar[tuple[str, ...]] = ("--grpc", "off")
    _program: subprocess.Popen[str] | None = None

    def start(self) -> None:
        if not self.folder.exists():
            self._command("init")
            self._account = self._command("tenant", "create", _TENANT)["account_id"]
            scopes = ("--scope", "telemetry:write", "--scope", "topology:read")
            self.key = self._command("key", "create", _TENANT, *scopes)["key"]
        settings = [part for item in _SETTINGS.items() for part in ("--set", "{}={}".format(*item))]
        addresses = ("--http", "127.0.0.1:0", "--admin", "off", *self.listeners)
        with self.folder.with_suffix(".log").open("ab") as log:
            self._program = subprocess.Popen(
                [*self._fleetcast("serve"), *addresses, *settings],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._program.stdout is not None  # noqa: S101 - a pipe was asked for
        line = self._program.stdout.readline()
        if not line:
            message = f"fleetcast did not start: {self.folder.with_suffix('.log')} says why"
            raise OperatorError(message)
        self.ready = json.loads(line)

    def process(self) -> int | None:
        return self._program.pid if self._program else None

    def reader(self) -> ServiceSession:
        """Opens a connection over HTTP."""
        return ServiceSession(self.ready["http"], self.key, self.names)

    def settle(self) -> None:
        before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        self._command("compact")
        self.helpers_cpu_seconds += sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before

    def stored_bytes(self) -> int | None:
        return processes.bytes_below(self.folder / "planes" / self._account)

    def kill(self) -> None:
        super().kill()
        self._end()

    def stop(self) -> None:
        if self._program is not None:
            self._program.terminate()
            self._end()

    def _end(self) -> None:
        if self._program is not None:
            self._program.wait(_STOP_SECONDS)
            if self._program.stdout:
                self._program.stdout.close()
            self._program = None

    def _fleetcast(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "fleetcast", *arguments, "--data", str(self.folder)]

    def _command(self, *arguments: str) -> Any:  # noqa: ANN401 - JSON
        done = subprocess.run(
            [*self._fleetcast(*arguments), "--json"],
            env={name: value for name, value in os.environ.items() if "FLEETCAST_" not in name},
            capture_output=True,
            check=False,
            text=True,
        )
        if done.returncode:
            raise OperatorError(done.stderr.strip())
        return json.loads(done.stdout or "null")
