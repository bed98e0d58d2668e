"""The same rows into fleetcast and into other databases, one after the other: CPU, time and disk.

    python -m benches.peer [--bodies 1000] [--peers questdb,postgres,victoria]

QuestDB 9.3.4 comes from the Maven registry (`benches/peer/pom.xml`; needs Java 17 and Maven).
Bodies of 1,000 rows over four connections; JSON to fleetcast and the line protocol to its adapter
listener, the line protocol over HTTP to QuestDB, once with its default durability (the page cache)
and once with `cairo.commit.mode=sync`. PostgreSQL takes each body by COPY into a table without an
index (`postgres.py`), VictoriaMetrics the line protocol (`victoria.py`); either is left out where
its program is missing.
CPU is that of all server processes until the last row can be read, what they do after the answer
included; disk is what lies there when they have come to rest, compaction included.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from benches.harness.measure import cpu_seconds_of, with_children
from benches.harness.paths import DATA, TARGET
from benches.harness.servers import CONNECTIONS, service
from benches.inputs import fleet
from benches.peer import postgres, victoria
from fleetcast.bench.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
ROWS = DATA / "peer"
JARS = TARGET / "peer"
REST_SECONDS = 5.0
NS = 1_000_000_000


def lines(body: bytes) -> bytes:
    """A JSON body in the line protocol."""
    rows = []
    for row in orjson.loads(body):
        tags = ",".join(f"{key}={value}" for key, value in row["tags"].items())
        fields = ",".join(f"{key}={value}" for key, value in row["fields"].items())
        seconds, _, milliseconds = row["time"].rstrip("Z").partition(".")
        whole = int(time.mktime(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S"))) - time.timezone
        rows.append(
            f"{row['measurement']},{tags} {fields} {whole * NS + int(milliseconds) * 10**6}"
        )
    return ("\n".join(rows) + "\n").encode()


def post(address: str, head: str, bodies: list[bytes], good: bytes) -> None:
    """Posts bodies one after the other over one connection."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for body in bodies:
            wire.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = b""
            while b"\r\n\r\n" not in answer or not complete(answer):
                answer += wire.recv(65_536)
            assert answer.startswith(good), answer[:300]


def complete(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0].strip()
    return len(body) >= int(length or 0)


def pour(address: str, head: str, bodies: list[bytes], good: bytes) -> None:
    """All bodies over `CONNECTIONS` connections."""
    shares = [bodies[number::CONNECTIONS] for number in range(CONNECTIONS)]
    threads = [threading.Thread(target=post, args=(address, head, s, good)) for s in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def disk_bytes(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


@dataclass
class Outcome:
    name: str
    seconds: float
    cpu_seconds: float
    disk_bytes: int


def measured(name, process, folder, send, settle, cpu=None) -> Outcome:
    cpu = cpu or (lambda: cpu_seconds_of(with_children(process)))
    before, start = cpu(), time.perf_counter()
    send()
    seconds = time.perf_counter() - start
    settle()
    return Outcome(name, seconds, cpu() - before, disk_bytes(folder))


def ours(name: str, bodies: list[bytes], head: str, listener: str, good: bytes) -> Outcome:
    """The service as it is, through one of its listeners; `head` lacks the key."""
    data = ROWS / name.replace(" ", "-")
    data.mkdir(parents=True)
    key = service.prepare(data, "peer")
    running = service.start(data, key, "--set", "adapters.address=127.0.0.1:0")
    account = service.command(data, "tenant", "show", "peer")["account_id"]
    address = urllib.parse.urlsplit(running.ready[listener]).netloc
    send = f"{head}Host: x\r\nX-Api-Key: {key}\r\n"
    # Compaction by itself meanwhile is a matter of chance; the last figure has all of it.
    of_listener = running.arbiter(listener)
    before = cpu_seconds_of(with_children(of_listener))
    try:
        outcome = measured(
            name,
            running.process.pid,
            data / "planes" / account,
            lambda: pour(address, send, bodies, good),
            lambda: service.command(data, "compact"),
            # With that of the command, which has ended by then.
            lambda: cpu_seconds_of(with_children(running.process.pid)) + sum(os.times()[2:4]),
        )
        taking = cpu_seconds_of(with_children(of_listener)) - before
        rows = len(bodies) * fleet.BODY_RECORDS
        print(f"{name}: {rows / taking:,.0f} rows per CPU second of its listener", flush=True)
        return outcome
    finally:
        running.stop()


JSON = "POST /telemetry HTTP/1.1\r\nContent-Type: application/json\r\n"
LINES = "POST /write?precision=n HTTP/1.1\r\n"


def fetched() -> Path:
    if not list(JARS.glob("questdb-*.jar")):
        copy = ["mvn", "-q", "dependency:copy-dependencies", f"-DoutputDirectory={JARS}"]
        subprocess.run(copy, cwd=HERE, check=True)
    (jar,) = JARS.glob("questdb-*.jar")
    return jar


@contextmanager
def questdb(folder: Path, mode: str):
    folder.mkdir(parents=True)
    port = free_port()
    settings = {
        "QDB_HTTP_BIND_TO": f"127.0.0.1:{port}",
        "QDB_HTTP_MIN_ENABLED": "false",
        "QDB_PG_ENABLED": "false",
        "QDB_LINE_TCP_ENABLED": "false",
        "QDB_TELEMETRY_ENABLED": "false",
        "QDB_CAIRO_COMMIT_MODE": mode,
    }
    command = ["java", "-p", fetched(), "-m", "io.questdb/io.questdb.ServerMain", "-d", folder]
    with (ROWS / f"{folder.name}.log").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                query(port, "select 1")
                break
            except OSError:
                assert time.monotonic() < deadline, "QuestDB did not start"
                time.sleep(0.2)
        yield process, port
    finally:
        process.terminate()
        process.wait(60)


def query(port: int, text: str) -> list:
    parameters = urllib.parse.urlencode({"query": text})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/exec?{parameters}", timeout=60) as answer:
        return json.load(answer)["dataset"]


def peer(name: str, mode: str, bodies: list[bytes], warm: list[bytes]) -> Outcome:
    with questdb(ROWS / name.replace(" ", "-"), mode) as (process, port):
        address = f"127.0.0.1:{port}"
        head = "POST /write?precision=n HTTP/1.1\r\nHost: x\r\n"
        # The virtual machine compiles what runs often: not part of the measurement.
        pour(address, head, [b.replace(b"link,", b"warm,") for b in warm], b"HTTP/1.1 204")
        expected = len(bodies) * fleet.BODY_RECORDS

        def settle() -> None:
            while query(port, "select count() from link") != [[expected]]:
                time.sleep(0.2)
            time.sleep(REST_SECONDS)

        folder = ROWS / name.replace(" ", "-") / "db"
        outcome = measured(
            name,
            process.pid,
            folder,
            lambda: pour(address, head, bodies, b"HTTP/1.1 204"),
            settle,
        )
        table = [path for path in folder.iterdir() if path.name.startswith("link~")]
        return Outcome(name, outcome.seconds, outcome.cpu_seconds, sum(map(disk_bytes, table)))


def postgresql(bodies: list[bytes]) -> Outcome:
    files = []
    for number, body in enumerate(bodies):
        files.append(ROWS / f"{number:06}.csv")
        files[-1].write_text(postgres.rows(body))
    folder = ROWS / "postgres"
    with postgres.running(folder, free_port(), fleet.FIELDS) as server:
        outcome = measured(
            "PostgreSQL COPY",
            0,
            folder,
            lambda: server.copy(files),
            lambda: server.ask("checkpoint"),
            server.cpu_seconds,
        )
        assert int(server.ask("select count(*) from link")) == len(bodies) * fleet.BODY_RECORDS
        table = int(server.ask("select pg_total_relation_size('link')"))
    return Outcome(outcome.name, outcome.seconds, outcome.cpu_seconds, table)


def victoria_metrics(spelled: list[bytes]) -> Outcome:
    folder, port = ROWS / "victoria", free_port()
    expected = len(spelled) * fleet.BODY_RECORDS * len(fleet.FIELDS)
    with victoria.running(folder, port) as process:

        def settle() -> None:
            while victoria.values_stored(port) < expected:
                time.sleep(0.2)
            victoria.flush(port)
            time.sleep(3 * REST_SECONDS)  # it writes what is in memory every five seconds

        head = "POST /write?precision=n HTTP/1.1\r\nHost: x\r\n"
        send = partial(pour, f"127.0.0.1:{port}", head, spelled, b"HTTP/1.1 204")
        return measured("VictoriaMetrics", process.pid, folder / "data", send, settle)


def outcomes_of(peers: set[str], bodies: list[bytes]) -> Iterator[Outcome]:
    """Ours first, then each that is wanted and there."""
    spelled = [lines(body) for body in bodies]
    yield ours("fleetcast", bodies, JSON, "http", b"HTTP/1.1 202")
    yield ours("fleetcast lines", spelled, LINES, "adapters", b"HTTP/1.1 204")
    if "questdb" in peers:
        yield peer("QuestDB default", "nosync", spelled, spelled[:200])
        yield peer("QuestDB sync", "sync", spelled, spelled[:200])
    if "postgres" in peers and postgres.programs() is not None:
        yield postgresql(bodies)
    if "victoria" in peers and victoria.program() is not None:
        yield victoria_metrics(spelled)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bodies", type=int, default=1_000)
    parser.add_argument("--peers", default="questdb,postgres,victoria")
    options = parser.parse_args()
    count = options.bodies
    shutil.rmtree(ROWS, ignore_errors=True)
    ROWS.mkdir(parents=True)
    rows, values = count * fleet.BODY_RECORDS, count * fleet.BODY_RECORDS * len(fleet.FIELDS)
    print(f"{rows:,} rows, {values:,} values, bodies of {fleet.BODY_RECORDS:,}")
    print("| | rows per server CPU second | rows per second | bytes per value on disk |")
    print("| --- | ---: | ---: | ---: |")
    for each in outcomes_of(set(options.peers.split(",")), list(fleet.bodies(count))):
        cells = f"{rows / each.cpu_seconds:,.0f} | {rows / each.seconds:,.0f}"
        print(f"| {each.name} | {cells} | {each.disk_bytes / values:.3f} |", flush=True)


if __name__ == "__main__":
    main()
