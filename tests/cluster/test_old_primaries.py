"""A primary that was replaced but lives on, and a primary whose settings break a promise.

No node believes them: neither by a session that was open before, nor by another.
"""

from __future__ import annotations

import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl
import pytest

from fleetcast.engine import Cluster, Planes, encode_records
from fleetcast.errors import StoreUnavailable, StoreUnreachable
from tests.waiting import until

from .load import EVER, KEY, START
from .nodes import engine, servers
from .relay import Relay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.engine import Plane

NODES = 3
READERS = 4  # threads of each node, of which one has the reader's own session
SCHEMA = random.Random(11).randrange(2**32)


@dataclass
class Writers:
    """Handles of one plane as several nodes have them, and the count of rows they acknowledged."""

    url: str
    name: str
    handles: list[Plane]
    acknowledged: int = field(default=0)

    def write(self, handle: Plane) -> bool:
        """Writes a row, and returns true if it was acknowledged."""
        row = {"measurement": "link", "time": START.isoformat(), "tags": {"entity_id": "e"}}
        try:
            handle.write_json(encode_records([{**row, "fields": {"n": 1.0}}]))
        except StoreUnreachable:
            return False
        self.acknowledged += 1
        return True

    def read(self, handle: Plane) -> list[int | None]:
        """Counts the rows in several threads at once; `None` for a read that was refused."""

        def rows(_: int) -> int | None:
            try:
                return handle.stats().stored_rows
            except StoreUnreachable:
                return None

        with ThreadPoolExecutor(READERS) as pool:
            return list(pool.map(rows, range(READERS)))

    def anew(self) -> Plane:
        """Opens the plane as a process that has just started."""
        return Planes.in_cluster(Cluster(self.url)).open(self.name, KEY, "acme")

    def all_go_on(self) -> None:
        """Waits until all nodes write and read."""
        for handle in self.handles:
            until(lambda handle=handle: self.write(handle))
        for handle in self.handles:
            until(lambda handle=handle: None not in self.read(handle))


@pytest.fixture
def writers(database: str) -> Writers:
    """Nodes whose sessions are open and have written and read."""
    url = f"{database}?options=-csearch_path%3Dold{SCHEMA}"
    clusters = [Cluster(url) for _ in range(NODES)]
    clusters[0].install("test", b"check")
    name = f"00000000-0000-4000-8000-{random.randrange(16**12):012x}"
    planes = [Planes.in_cluster(cluster) for cluster in clusters]
    planes[0].create(name, KEY)
    found = Writers(url, name, [each.open(name, KEY, "acme") for each in planes])
    found.all_go_on()
    return found


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    """Every server follows the primary after the test, as before it."""
    if len(servers()) < 3:
        pytest.skip("the database has fewer than three servers")
    all_follow()
    with ExitStack() as left:
        yield left
    all_follow()


def all_follow() -> None:
    until(lambda: engine("standbys") == str(len(servers()) - 1))


def promoted(old: str, undo: ExitStack) -> tuple[str, str]:
    """Promotes a standby. Returns its number, and that of the server that follows the old one."""
    engine("promote")
    others = [each for each in servers() if each != old]
    is_standby = "SELECT pg_is_in_recovery()"
    new = until(lambda: [each for each in others if engine("sql", is_standby, each) == "f"])[0]
    (third,) = (each for each in others if each != new)
    undo.callback(engine, "rejoin", third)
    undo.callback(engine, "rejoin", old)
    undo.callback(engine, "kill", old)
    return new, third


def test_a_primary_is_left_once_a_standby_was_promoted_beside_it(writers, undo):
    old = engine("primary")
    new, third = promoted(old, undo)
    # The third server still follows the old primary, which can therefore acknowledge.
    before = writers.acknowledged
    for handle in writers.handles:
        until(lambda handle=handle: not writers.write(handle))
    beside = writers.acknowledged - before
    print(f"\npromoted beside: {beside} acknowledged before it was seen")
    assert [set(writers.read(handle)) for handle in writers.handles] == [{None}] * NODES
    # Nor does it acknowledge or answer later, although it lives.
    engine("rejoin", third, new)
    writers.all_go_on()
    fresh = writers.anew()
    until(lambda: writers.write(fresh))
    rows = until(lambda: fresh.stats().stored_rows)
    assert [writers.read(handle) for handle in writers.handles] == [[rows] * READERS] * NODES
    assert writers.acknowledged - rows <= beside


def test_a_frozen_primary_that_wakes_up_beside_its_successor_is_not_believed(writers, undo):
    old = engine("primary")
    undo.callback(engine, "thaw", old)
    engine("freeze", old)
    new, third = promoted(old, undo)
    with ThreadPoolExecutor() as pool:
        # Writes that the old primary has taken, and answers once it wakes up.
        under_way = [pool.submit(writers.write, handle) for handle in writers.handles]
        until(lambda: all(set(writers.read(handle)) == {None} for handle in writers.handles))
        engine("thaw", old)  # the third server still follows it
        for each in under_way:
            each.result()
        engine("rejoin", third, new)
        writers.all_go_on()
    rows = until(lambda: writers.anew().stats().stored_rows)
    assert rows >= writers.acknowledged
    assert [writers.read(handle) for handle in writers.handles] == [[rows] * READERS] * NODES


def written(handle: Plane, number: int) -> None:
    """Writes a row of its own, which must be acknowledged."""
    row = {"measurement": "link", "tags": {"entity_id": "e"}, "fields": {"n": float(number)}}
    moment = START + timedelta(seconds=number)
    handle.write_json(encode_records([{**row, "time": moment.isoformat()}]))


def numbers(handle: Plane) -> list[float] | None:
    """Values of all rows; `None` for a read that was refused."""
    try:
        return sorted(pl.DataFrame(handle.scan(*EVER))["n"].to_list())
    except StoreUnreachable:
        return None


def is_over(handle: Plane) -> bool:
    """True once a handle has found out that it was shown another history."""
    try:
        numbers(handle)
    except StoreUnavailable:
        return True
    return False


def sent_again(plane: str, old: str, new: str) -> None:
    """Stores the last batch of the old primary on the new one, as one who got no answer does."""
    within, of = f"SET search_path = old{SCHEMA};", f"plane = '{plane}'"
    last = "slot, id, encode(sealed, 'hex') FROM log"
    asked = f"{within} SELECT {last} WHERE {of} ORDER BY seq DESC LIMIT 1"
    slot, batch, sealed = engine("sql", asked, old).split("\n")[-1].split("|")
    counted = f"UPDATE head SET last = last + 1, last_id = '{batch}' WHERE {of} RETURNING last"  # noqa: S608 - its own id
    stored = f"SELECT {slot}, '{plane}', last, '{batch}', decode('{sealed}', 'hex') FROM h"  # noqa: S608 - its own id
    engine("sql", f"{within} WITH h AS ({counted}) INSERT INTO log {stored}", new)


def test_a_batch_that_is_sent_again_to_its_place_hides_no_fork_before_it(writers, undo):
    old, (start, path) = engine("primary"), writers.url.split("/fleet?")
    hosts = dict(zip(servers(), start.partition("@")[2].split(","), strict=True))
    with Relay() as relay:
        user = start.partition("@")[0]
        planes = Planes.in_cluster(Cluster(f"{user}@{hosts[old]},{relay.address}/fleet?{path}"))
        reader = planes.open(writers.name, KEY, "acme")
        before = numbers(reader)
        new, third = promoted(old, undo)
        # The reader is told nothing, and the third server confirms what the old primary stores.
        written(reader, 2)
        written(reader, 3)
        assert numbers(reader) == [*before, 2.0, 3.0]
        engine("rejoin", third, new)
        fresh = writers.anew()
        written(fresh, 4)
        sent_again(writers.name, old, new)
        after = [*before, 3.0, 4.0]
        assert numbers(fresh) == after
        relay.open(hosts[new])
        until(lambda: is_over(reader))
        assert numbers(planes.open(writers.name, KEY, "acme")) == after


def reload(setting: str) -> None:
    """Changes a setting of the primary without a restart."""
    engine("sql", f"ALTER SYSTEM {setting}")
    engine("sql", "SELECT pg_reload_conf()")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("fsync", "off"), ("full_page_writes", "off"), ("synchronous_standby_names", "''")],
)
def test_a_reload_that_breaks_a_promise_ends_acknowledgements_and_reads(
    writers, undo, setting, value
):
    undo.callback(reload, f"RESET {setting}")
    reload(f"SET {setting} = {value}")
    for handle in writers.handles:
        until(lambda handle=handle: not writers.write(handle))
        until(lambda handle=handle: set(writers.read(handle)) == {None})
    with pytest.raises(StoreUnreachable, match=setting):
        writers.anew()
    reload(f"RESET {setting}")
    writers.all_go_on()
    assert writers.anew().stats().stored_rows >= writers.acknowledged


WAITING = """SELECT string_agg(pid::text, ',') FROM pg_stat_activity
WHERE wait_event = 'SyncRep' AND application_name = 'fleetcast'"""


def test_sessions_wait_for_a_standby_whatever_a_reload_says(writers, undo):
    undo.callback(reload, "RESET synchronous_commit")
    reload("SET synchronous_commit = off")
    standbys = [each for each in servers() if each != engine("primary")]
    for each in standbys:
        undo.callback(engine, "thaw", each)
        engine("freeze", each)
    with ThreadPoolExecutor() as pool:
        pool.submit(writers.write, writers.handles[0])
        assert until(lambda: engine("sql", WAITING))  # a write that waits for a standby
        for each in standbys:
            engine("thaw", each)
    until(lambda: writers.write(writers.handles[0]))


def test_a_commit_without_a_copy_is_not_acknowledged_after_two_reloads(writers, undo):
    primary = engine("primary")
    undo.callback(reload, "RESET synchronous_standby_names")
    for each in (each for each in servers() if each != primary):
        undo.callback(engine, "thaw", each)
        engine("freeze", each)
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(writers.write, writers.handles[0])
        pid = int(until(lambda: engine("sql", WAITING)))
        # The session sleeps while the standbys are taken away, and given back.
        with ExitStack() as asleep:
            asleep.callback(os.kill, pid, signal.SIGCONT)
            os.kill(pid, signal.SIGSTOP)
            reload("SET synchronous_standby_names = ''")
            engine("sql", "SELECT pg_logical_emit_message(true, '', '')")  # which waits until then
            reload("RESET synchronous_standby_names")
        assert not writing.result()


def test_a_wait_for_a_standby_that_is_cut_short_acknowledges_nothing(writers, undo):
    standbys = [each for each in servers() if each != engine("primary")]
    for each in standbys:
        undo.callback(engine, "thaw", each)
        engine("freeze", each)
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(writers.write, writers.handles[0])
        pid = until(lambda: engine("sql", WAITING))
        engine("sql", f"SELECT pg_cancel_backend({pid})")
        # It waits again, by another session, until that is enough.
        until(lambda: engine("sql", WAITING) not in ("", pid) or writing.done())
        assert not (writing.done() and writing.result())
        for each in standbys:
            engine("thaw", each)
    until(lambda: writers.write(writers.handles[0]))
