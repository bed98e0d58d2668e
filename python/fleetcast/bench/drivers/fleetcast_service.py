"""The service in its own data directory, with reads over HTTP; subclasses add the writes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from fleetcast.bench import processes
from fleetcast.bench.driver import Fields, ProgramDriver, Samples
from fleetcast.bench.rows import NS_PER_SECOND, RowNames
from fleetcast.bench.truth import WEEK_NS
from fleetcast.client.http import Client
from fleetcast.engine import parse_time
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.bench.driver import ReadSession, Writer

_TENANT = "bench"
_ENTITIES_MAX = 16
TIMEOUT_SECONDS = 60.0
# The workload comes from one address, and its rows are older than the service answers by default.
_SETTINGS = {
    "limits.requests_per_minute": 0,
    "limits.history_horizon_days": 36_500,
    "limits.raw_span_seconds": 31_536_000,
    "limits.point_budget": 1_000_000,
}


class ServiceReads:
    """One connection to read; see `Session`."""

    def __init__(self, client: Client, names: RowNames) -> None:
        self._client = client
        self._names = names
        self.close = client.close

    def newest(self, measurement: str, end_ns: int) -> dict[str, tuple[int, Fields]]:
        week_seconds = WEEK_NS // NS_PER_SECOND
        return newest_of(
            self._client.topology(measurement, as_of=end_ns, freshness_seconds=week_seconds)
        )

    def window(
        self, measurement: str, entities: Sequence[str], start_ns: int, end_ns: int
    ) -> Samples:
        found: Samples = {}
        for first in range(0, len(entities), _ENTITIES_MAX):
            some = entities[first : first + _ENTITIES_MAX]
            begin: int | str | None = start_ns
            while begin is not None:
                page = self._client.series(
                    some,
                    start=begin,
                    end=end_ns,
                    measurement=measurement,
                    fields=self._names.fields[measurement],
                )
                for one in page["series"]:
                    _merge(one, found.setdefault(one["entity_id"], {}))
                begin = page.get("next_start") if page.get("truncated") else None
        return found


class SplitSession:
    """A connection to write, and a connection to read."""

    def __init__(self, writer: Writer, reader: ReadSession) -> None:
        self._writer, self._reader = writer, reader
        self.write = writer.write
        self.newest = reader.newest
        self.window = reader.window

    def close(self) -> None:
        self._writer.close()
        self._reader.close()


def newest_of(answer: Mapping[str, Any]) -> dict[str, tuple[int, Fields]]:
    """Reads an answer of `GET /topology`."""
    return {
        each["entity_id"]: (parse_time(each["observed_at"]), each["fields"])
        for each in answer["entities"]
    }


def _merge(one: dict[str, Any], times: dict[int, Fields]) -> None:
    for at, time in enumerate(one["times"]):
        values = ((name, channel[at]) for name, channel in one["channels"].items())
        times[parse_time(time)] = {name: value for name, value in values if value is not None}


class RunningService(ProgramDriver):
    """`fleetcast serve` with default settings, except that clients have no rate limit."""

    listeners: ClassVar[tuple[str, ...]] = ("--grpc", "off")

    def start(self) -> None:
        if not self.folder.exists():
            self._command("init")
            self._account = self._command("tenant", "create", _TENANT)["account_id"]
            scopes = ("--scope", "telemetry:write", "--scope", "topology:read")
            self.key = self._command("key", "create", _TENANT, *scopes)["key"]
        settings = [part for item in _SETTINGS.items() for part in ("--set", "{}={}".format(*item))]
        addresses = ("--http", "127.0.0.1:0", "--admin", "off", *self.listeners)
        with self.folder.with_suffix(".log").open("ab") as log:
            self.program = subprocess.Popen(
                [*self._fleetcast("serve"), *addresses, *settings],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.program.stdout is not None  # noqa: S101 - a pipe was asked for
        line = self.program.stdout.readline()
        if not line:
            message = f"fleetcast did not start: {self.folder.with_suffix('.log')} says why"
            raise OperatorError(message)
        self.ready = json.loads(line)

    def reader(self) -> ServiceReads:
        """Opens a connection over HTTP."""
        client = Client(self.ready["http"], self.key, timeout_seconds=TIMEOUT_SECONDS)
        return ServiceReads(client, self.names)

    def settle(self) -> None:
        before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        self._command("compact")
        self.helpers_cpu_seconds += sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before

    def stored_bytes(self) -> int | None:
        return processes.bytes_below(self.folder / "planes" / self._account)

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
