"""One tenant that does its worst, in a process of its own that leaves the cores to others.

Arguments: name of the attack, and as JSON where the service is and whose key it has. Each line on
stdin, `{"seconds": 10}`, is answered by one on stdout when that time is over: requests by outcome
and CPU seconds of this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import grpc
import grpc.aio

from benches.harness.driving import answer_commands
from benches.inputs import fleet
from benches.neighbours.attack import Attack, Request
from benches.neighbours.grpc_floods import (
    Handshakes,
    Pings,
    RefusedCalls,
    ResetCalls,
    SilentConnections,
)
from fleetcast.engine import Engine, format_time
from tests.service.hostile import holding  # found by the line above

if TYPE_CHECKING:
    from collections.abc import Callable

METHOD = "/fleet.telemetry.v1.TelemetryIngest/Write"
NOW = "2100-01-01"  # a time to come is the time of writing (D10)
CHANNELS, CALLS_A_CHANNEL = 17, 241
SLOW_READERS, WIDE_ENTITIES = 50, 20_000
FIELDS_MAX = 4_000
DAYS = 365
LEADS_SECONDS = (3_600, 40 * 86_400, 4, -10 * 86_400, 0)  # of the clock that jumps
MARK = b"@@@@@@@@"  # replaced by the turn: eight digits


def body(*records: dict) -> bytes:
    return json.dumps(records, separators=(",", ":")).encode()


def record(entity: str, fields: dict, time_text: str = NOW, **tags: str) -> dict:
    tags = {"entity_id": entity, **tags}
    return {"measurement": "link", "time": time_text, "tags": tags, "fields": fields}


def series(entities: list[str], start: datetime, end: datetime, **chosen: str) -> str:
    span = {"start": f"{start:%Y-%m-%dT%H:%M:%SZ}", "end": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
    query = {"entity_id": entities, "measurement": "link", **span, **chosen}
    return f"/topology/series?{urlencode(query, doseq=True)}"


class Wide(Attack):
    """Many entities and one record of thousands of fields in a body, and reads of both."""

    def prepare(self) -> None:
        narrow = [record(f"n{number}", {"snr_db": number / 7}) for number in range(900)]
        wide = record("wide", {f"channel_{number}": number / 3 for number in range(FIELDS_MAX)})
        self._body = body(*narrow, wide)
        self.post(self._body)

    def request(self, turn: int) -> Request:
        now = datetime.now(UTC)
        reads = ("/topology", series(["wide", "n1"], now - timedelta(minutes=50), now))
        return (
            ("GET", reads[turn % 2], None) if turn % 4 == 3 else ("POST", "/telemetry", self._body)
        )


class Names(Attack):
    """An entity, a tag and every second time a field in each record that nobody has named yet."""

    def prepare(self) -> None:
        mark = MARK.decode()
        rows = range(500)
        named = [record(f"e{mark}-{n}", {f"f{mark}-{n}": n}, site=f"s{mark}-{n}") for n in rows]
        plain = [record(f"e{mark}-{n}", {"snr_db": n}, site=f"s{mark}-{n}") for n in rows]
        self._bodies = [body(*named), body(*plain)]

    def request(self, turn: int) -> Request:
        content = self._bodies[turn % 2].replace(MARK, b"%08d" % turn)
        return "POST", "/telemetry", content


class Series(Attack):
    """Means over the whole horizon for all entities that the point budget takes, and raw hours."""

    ENTITIES = 13  # of 720 hours each

    def prepare(self) -> None:
        self._end = datetime.now(UTC)
        self._start = self._end - timedelta(days=29, hours=23)
        steps = 30 * 96
        names = [f"s{number}" for number in range(self.ENTITIES)]
        rows = (
            record(
                name,
                {f"c{channel}": random.randint(0, 999) / 8 for channel in range(10)},
                f"{self._start + step * timedelta(minutes=15):%Y-%m-%dT%H:%M:%SZ}",
            )
            for step in range(steps)
            for name in names
        )
        while chunk := list(itertools.islice(rows, 1000)):
            self.post(body(*chunk))
        self._paths = [
            series(names, self._start, self._end, interval="1h"),
            series(names, self._end - timedelta(minutes=59), self._end),
        ]

    def request(self, turn: int) -> Request:
        return "GET", self._paths[turn % 4 == 3], None


class Predictions(Attack):
    """A hundred links or pools that there never were in each request."""

    def request(self, turn: int) -> Request:
        ids = [f"unknown-{turn}-{number}" for number in range(100)]
        query = {"link_ids": ids, "model_family": ("snr", "demand")[turn % 2]}
        return "GET", f"/predictions?{urlencode(query, doseq=True)}", None


class Instant(Attack):
    """One entity at one instant: another large text, or other tags, each time."""

    def prepare(self) -> None:
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        mark = MARK.decode()
        text = "x" * 1_000_000
        tagged = [
            record("one", {"snr_db": n}, now, beam=f"{mark}-{n % 2}", site=f"{n % 3}")
            for n in range(900)
        ]
        self._bodies = [body(record("one", {f"text_{mark}": text}, now)), body(*tagged)]

    def request(self, turn: int) -> Request:
        if turn % 8 == 7:
            return "GET", "/topology", None
        return "POST", "/telemetry", self._bodies[turn % 2].replace(MARK, b"%08d" % (turn % 64))


class Debt(Attack):
    """Rows of a whole year in each body, so that every day has to be packed again and again."""

    def prepare(self) -> None:
        days = [datetime.now(UTC) - timedelta(days=day) for day in range(DAYS)]
        mark = MARK.decode()
        rows = [
            record(
                f"d{n % 40}",
                {"snr_db": n / 7, "turn": mark},
                f"{days[n % DAYS]:%Y-%m-%dT%H:%M:%SZ}",
            )
            for n in range(1000)
        ]
        self._body = body(*rows)

    def request(self, turn: int) -> Request:
        return "POST", "/telemetry", self._body.replace(MARK, b"%08d" % turn)


class Bodies(Attack):
    """Bodies of just under a mebibyte, one after the other on every connection."""

    def prepare(self) -> None:
        self._bodies = []
        for _ in range(4):
            rows = []
            for number in range(1000):
                fields = {f"channel_{n:02}": random.random() for n in range(27)}
                rows.append(record(f"b{number}", fields))
            content = body(*rows)
            assert 900_000 < len(content) <= 1_048_576, len(content)
            self._bodies.append(content)

    def request(self, turn: int) -> Request:
        return "POST", "/telemetry", self._bodies[turn % len(self._bodies)]


class Clock(Attack):
    """Writes under clocks that are ahead or behind, beside others and reads under the right one.

    The service has no way to give it a wrong clock, so another process of the same store does it:
    several may have one open.
    """

    def prepare(self) -> None:
        engine = Engine(Path(self.target.data) / "planes", bytes.fromhex(self.target.master_key))
        self._plane = engine.plane(self.target.account, self.target.tenant)
        self._body = body(*(record(f"c{number}", {"snr_db": number}) for number in range(50)))

    def run(self, until: float) -> None:
        def jump() -> None:
            for lead in itertools.cycle(LEADS_SECONDS):
                if time.monotonic() > until:
                    return
                now_ns = time.time_ns() + lead * 10**9
                text = format_time(now_ns).encode()
                self._plane.write_json(self._body.replace(NOW.encode(), text), now_ns=now_ns)
                self.count["jumps"] += 1
                time.sleep(0.02)

        jumping = threading.Thread(target=jump)
        jumping.start()
        super().run(until)
        jumping.join()

    def request(self, turn: int) -> Request:
        return ("GET", "/topology", None) if turn % 2 else ("POST", "/telemetry", self._body)


class SlowReaders(Attack):
    """Large answers of which next to nothing is taken."""

    def prepare(self) -> None:
        for content in fleet.wide_bodies(WIDE_ENTITIES):
            self.post(content.replace(b'"time":"2026-03-01', b'"time":"2100-03-01'))

    def run(self, until: float) -> None:
        while time.monotonic() < until:
            with holding(self.target, "slow readers of large answers", SLOW_READERS) as held:
                end = min(until, time.monotonic() + 10)
                while time.monotonic() < end:
                    held.sip()
                    time.sleep(0.25)
                self.count["held"] += held.open_count()
                self.count["closed"] += SLOW_READERS - held.open_count()


class SilentCalls(Attack):
    """As many gRPC calls as there are, opened and never sent; each that ends is opened again."""

    def prepare(self) -> None:
        self._loop = asyncio.new_event_loop()  # for all rounds: the library goes on after a call

    def run(self, until: float) -> None:
        authority = Path(self.target.grpc_ca).read_bytes()
        self._loop.run_until_complete(self._hold(until, authority))

    async def _hold(self, until: float, authority: bytes) -> None:
        credentials = grpc.ssl_channel_credentials(authority)
        options = [("grpc.use_local_subchannel_pool", 1)]
        channels = [
            grpc.aio.secure_channel(self.target.grpc, credentials, options) for _ in range(CHANNELS)
        ]
        calls = [self._silent(each, until) for each in channels for _ in range(CALLS_A_CHANNEL)]
        await asyncio.gather(*calls)
        for each in channels:
            await each.close()

    async def _silent(self, channel: grpc.aio.Channel, until: float) -> None:
        while (left := until - time.monotonic()) > 0:
            call = channel.stream_unary(METHOD)(metadata=(("x-api-key", self.target.key),))
            try:
                await asyncio.wait_for(call.code(), left)
                self.count[(await call.code()).name] += 1
                await asyncio.sleep(0.1)
            except TimeoutError:
                self.count["held"] += 1
                call.cancel()


ATTACKS: dict[str, type[Attack]] = {
    "wide records": Wide,
    "new names without end": Names,
    "gRPC calls that never send": SilentCalls,
    "slow readers": SlowReaders,
    "full-span series": Series,
    "100 unknown predictions a request": Predictions,
    "one instant for ever": Instant,
    "clock jumps": Clock,
    "compaction debt": Debt,
    "1 MiB bodies at full speed": Bodies,
    "2,000 refused calls a second": RefusedCalls,
    "calls reset at once": ResetCalls,
    "pings without end": Pings,
    "5,000 silent connections": SilentConnections,
    "handshakes without end": Handshakes,
}


def driven(attack: Attack) -> Callable[[dict], dict]:
    def drive(wish: dict) -> dict:
        attack.count.clear()
        cpu = time.process_time()
        attack.run(time.monotonic() + wish["seconds"])
        return {"count": attack.count, "cpu_seconds": time.process_time() - cpu}

    return drive


def main() -> None:
    name, target = sys.argv[1:]
    attack = ATTACKS[name](SimpleNamespace(**json.loads(target)))
    attack.prepare()
    os.nice(19)  # threads that start from here on have it as well
    with contextlib.suppress(BrokenPipeError):
        answer_commands(driven(attack))


if __name__ == "__main__":
    main()
