"""Cost of a row, a series, a commit and a connection to the shared engines: units of estimates."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from benches.cluster.databases import database_cpu_seconds, databases
from benches.goals.table import Line
from benches.harness.measure import with_children
from benches.inputs import fleet, month
from fleetcast.engine import Cluster, Planes, encode_records
from tests.cluster.nodes import engine

if TYPE_CHECKING:
    from fleetcast.engine import Plane

KEY = bytes(32)
SERIES = 10_000
COMMITS = 1_000
VIEWS = 2_000
HOURS, ENTITIES = 24, 16


class Database:
    """A schema of its own, and what the primary says of it."""

    def __init__(self, folder: Path) -> None:
        self._schema = f"units{secrets.token_hex(4)}"
        url = os.environ["DATABASE"].partition("?")[0]
        cluster = Cluster(
            f"{url}?options=-csearch_path%3D{self._schema}",
            objects=f"file://{folder}/objects",
            cache=folder / "cache",
        )
        cluster.install("sandbox", b"check")
        self._planes = Planes.in_cluster(cluster)

    def plane(self) -> Plane:
        """An empty one."""
        name = str(uuid.uuid4())
        self._planes.create(name, KEY)
        return self._planes.open(name, KEY, "acme")

    def number(self, of: str) -> float:
        """A number out of its tables."""
        return float(engine("sql", f"SET search_path = {self._schema}; SELECT {of}").split()[-1])

    def wal(self) -> float:
        """Bytes of the write-ahead log so far."""
        return self.number("pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")


def unit_lines(folder: Path, *, hours: int = HOURS) -> list[Line]:
    """Bytes and CPU of the database for each thing that it keeps."""
    database = Database(folder)
    return [
        *_commits(database),
        *_names(database),
        *_segments(database, hours),
        Line("memory of a connection", f"{_connection_bytes() / 1e6:.1f} MB"),
    ]


def _commits(database: Database) -> list[Line]:
    plane = database.plane()
    bodies = list(fleet.bodies(16))
    for body in bodies:
        plane.write_json(body)
    engine("sql", "CHECKPOINT")
    before = database.wal(), database.number("sum(log_bytes) FROM head"), database_cpu_seconds()
    for number in range(COMMITS):
        plane.write_json(bodies[number % 16])
    cpu = database_cpu_seconds() - before[2]
    wal = database.wal() - before[0]
    blocks = database.number("sum(log_bytes) FROM head") - before[1]
    plane.latest_page(entities_max=1)
    used, began = database_cpu_seconds(), time.perf_counter()
    for _ in range(VIEWS):
        plane.latest_page(entities_max=1)
    views = database_cpu_seconds() - used
    each = (time.perf_counter() - began) / VIEWS
    values = COMMITS * fleet.BODY_RECORDS * 5
    return [
        Line("log, bytes a value", f"{blocks / values:.2f} B"),
        Line("write-ahead log, bytes a byte of the log", f"{wal / blocks:.2f}"),
        Line(
            "a commit of 1,000 rows, CPU of primary and two standbys",
            f"{1e3 * cpu / COMMITS:.2f} ms",
        ),
        Line(
            "a view of nothing new, CPU of the primary", f"{1e3 * views / VIEWS:.3f} ms",
            f"{1e3 * each:.2f} ms until it is answered",
        ),
    ]  # fmt: skip


def _names(database: Database) -> list[Line]:
    plane = database.plane()
    for first in range(0, SERIES, 1000):
        plane.write_json(
            encode_records(
                {
                    "measurement": "link",
                    "time": "2026-01-01T00:00:00Z",
                    "tags": {
                        "entity_id": f"link-{number:06}",
                        "ground_station": f"gs-{number % 40:03}",
                        "satellite": f"sat-{number % 700:04}",
                        "region": f"r{number % 9}",
                    },
                    "fields": {"snr_db": 1.0},
                }
                for number in range(first, first + 1000)
            )
        )
    pages = "SELECT sum(octet_length(page_bytes)) AS bytes FROM names GROUP BY plane"
    size = database.number(f"max(bytes) FROM ({pages}) AS planes")
    return [Line("names of four tags, bytes a series", f"{size / SERIES:.0f} B")]


def _segments(database: Database, hours: int) -> list[Line]:
    plane = database.plane()
    history = month.Month(ENTITIES, 1, month.until_now(ENTITIES, 1).end)
    before = database.number("coalesce(sum(bytes), 0) FROM segment")
    for number, (now_ns, body) in enumerate(history.bodies(), 1):
        plane.write_json(body, now_ns=now_ns)
        if number % ENTITIES == 0:
            plane.compact(now_ns=now_ns)
        if number == ENTITIES * hours:
            break
    plane.compact(whole=True, now_ns=history.end_ns)
    values = 5 * ENTITIES * hours * month.HOUR_SECONDS // month.STEP_SECONDS
    written = database.number("coalesce(sum(bytes), 0) FROM segment") - before
    left = database.number("coalesce(sum(bytes), 0) FROM segment WHERE removed_at IS NULL")
    return [
        Line("segments, bytes a value", f"{left / values:.2f} B"),
        Line("bytes of segments written, for each that stays", f"{written / left:.1f}"),
    ]


def _connection_bytes() -> float:
    """The mean over connections of nodes: memory of their own, and their share of the rest."""
    sizes = []
    for process in (process for main in databases() for process in with_children(main)):
        with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
            if b"fleet fleet" in Path(f"/proc/{process}/cmdline").read_bytes():
                lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
                sizes += [int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")]
    return sum(sizes) / len(sizes)
