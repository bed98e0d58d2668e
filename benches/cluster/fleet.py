"""Questions of many idle nodes with many tenants, and the time until all know a revoked key.

A node's follower of accounts is real, one for each node, and so are the questions about the states
of planes. All are threads of this process, with connections of their own.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from benches.goals.table import Line
from fleetcast.engine import Cluster, Records
from fleetcast.errors import RecordsUnavailable, StoreUnreachable
from tests.cluster.nodes import engine
from tests.waiting import PATIENCE_SECONDS, until

KEY = bytes(32)
STORE, SPACE = "accounts", "keys"
RECORDS_EACH = 3  # of a tenant: itself and two keys
PAGE = 1000
SECONDS = 60.0
STATES_EVERY_SECONDS = 15.0  # of each node
REVOCATIONS = 5
TICKS = os.sysconf("SC_CLK_TCK")


def fleet_lines(nodes: int, tenants: int) -> list[Line]:
    """CPU, write-ahead log and connections of the primary, and the times of revoked keys."""
    schema = f"fleet{secrets.token_hex(8)}"
    url = f"{os.environ['DATABASE'].partition('?')[0]}?options=-csearch_path%3D{schema}"
    writer = Cluster(url)
    writer.install("bench", b"check")
    accounts = Records.replica(writer, STORE, (SPACE,), KEY, follow=False)
    _fill(accounts, schema, tenants)
    clusters = [Cluster(url, connections=2) for _ in range(nodes)]
    with ThreadPoolExecutor(2) as pool:
        followers = list(pool.map(_follower, clusters))
    asking = threading.Event()
    states = threading.Thread(target=_ask_for_states, args=(clusters, asking))
    states.start()
    try:
        idle = _idle_lines(nodes, tenants)
    finally:
        asking.set()
        states.join()
    older = Records.in_cluster(writer, STORE, (SPACE,), KEY)
    return [
        *idle,
        _revocation_line("a key revoked until all nodes know", accounts, followers, 0),
        _revocation_line("… and all read all records", older, followers, REVOCATIONS),
    ]


def _fill(accounts: Records, schema: str, tenants: int) -> None:
    manifest = "convert_to(repeat('m', 500), 'UTF8')"
    planes = f"SELECT gen_random_uuid(), {manifest} FROM generate_series(1, {tenants})"  # noqa: S608 - a number
    for statement in (
        f"INSERT INTO plane (plane, manifest) {planes}",
        "INSERT INTO head (plane) SELECT plane FROM plane",
        "ANALYZE plane, head",
    ):
        engine("sql", f"SET search_path = {schema}; {statement}")
    for first in range(0, tenants * RECORDS_EACH, PAGE):
        with accounts.begin(write=True) as view:
            for number in range(first, first + PAGE):
                view.put(SPACE, _key(number), secrets.token_bytes(150))


def _key(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _follower(cluster: Cluster) -> Records:
    found = Records.replica(cluster, STORE, (SPACE,), KEY, follow=True)
    until(lambda: _is_read(found))
    return found


def _is_read(accounts: Records) -> bool:
    """False while a busy machine takes longer for all records than a read may."""
    with suppress(RecordsUnavailable):
        return _has(accounts, 0)
    return False


def _has(accounts: Records, number: int) -> bool:
    with accounts.begin(write=False) as view:
        return view.get(SPACE, _key(number)) is not None


def _ask_for_states(clusters: list[Cluster], ended: threading.Event) -> None:
    """Asks as each node does, one after the other."""
    while True:
        for cluster in clusters:
            if ended.wait(STATES_EVERY_SECONDS / len(clusters)):
                return
            with suppress(StoreUnreachable):  # of a machine that is too busy
                cluster.plane_states()


def _idle_lines(nodes: int, tenants: int) -> list[Line]:
    before = (time.monotonic(), _cpu_seconds(), _number(WAL), _number(COMMITS))
    time.sleep(SECONDS)
    after = (time.monotonic(), _cpu_seconds(), _number(WAL), _number(COMMITS))
    seconds, cpu, wal, commits = (b - a for a, b in zip(before, after, strict=True))
    what = f"{nodes} followers, {tenants} tenants"
    return [
        Line(f"primary's CPU, {what}", f"{cpu / seconds:.3f} cores"),
        Line("transactions a second", f"{commits / seconds:.0f}"),
        Line("write-ahead log", f"{wal / seconds / 1024:.1f} KiB/s"),
        Line("connections", f"{_number(CONNECTIONS):.0f}"),
    ]


WAL = "SELECT pg_current_wal_lsn() - '0/0'"
COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'fleet'"
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fleetcast'"


def _number(sql: str) -> float:
    return float(engine("sql", sql))


def _cpu_seconds() -> float:
    """CPU of the primary's processes, those included that have ended."""
    work = Path(os.environ["ENGINE_WORK"])
    postmaster = int((work / f"n{engine('primary')}/postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    ticks = sum(_times(postmaster))
    for child in children:
        with suppress(FileNotFoundError):  # it has ended since
            ticks += sum(_times(int(child))[:2])
    return ticks / TICKS


def _times(process: int) -> list[int]:
    """User and system time of a process, then of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return [int(field) for field in fields[11:15]]


def _revocation_line(figure: str, accounts: Records, followers: list[Records], first: int) -> Line:
    numbers = range(first, first + REVOCATIONS)
    try:
        times = sorted(_revoked(accounts, followers, number) for number in numbers)
    except AssertionError:
        return Line(figure, f"more than {PATIENCE_SECONDS:.0f} s")
    return Line(figure, f"{times[-1]:.2f} s", f"best {times[0]:.2f}")


def _revoked(accounts: Records, followers: list[Records], number: int) -> float:
    """Seconds until no follower finds a record that was deleted."""
    with accounts.begin(write=True) as view:
        view.delete(SPACE, _key(number))
    began = time.monotonic()
    until(lambda: not any(_has(each, number) for each in followers))
    return time.monotonic() - began
