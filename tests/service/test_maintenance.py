"""The maintenance process of a running service: compaction, retention, death."""

from __future__ import annotations

import contextlib
import json
import re
import resource
from concurrent import futures
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fleetcast.config import Settings
from fleetcast.engine import Engine, encode_records
from fleetcast.security.master_key import load_master_key
from tests.grpc import messages
from tests.grpc.station import Station
from tests.waiting import until, until_well

from .service import ask, command, prepare, running, start, whole_lines

if TYPE_CHECKING:
    from .service import Service

NOW = datetime.now(UTC)


def record(entity: str, time: datetime, value: float) -> dict:
    return {
        "measurement": "link",
        "time": time.isoformat(),
        "tags": {"entity_id": entity},
        "fields": {"snr_db": value},
    }


def segments(data: Path) -> set[str]:
    return {path.name for path in data.glob("planes/*/segments/*")}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def read(service, start: datetime) -> tuple[list, dict]:
    answer = service.get(
        "/topology/series", entity_id="a", measurement="link", start=start.isoformat()
    )
    topology = service.get("/topology", freshness_seconds=604_800)
    newest = {each["entity_id"]: each["fields"] for each in topology.json["entities"]}
    return answer.json["series"][0]["channels"].get("snr_db", []), newest


def test_it_compacts_and_goes_on_after_kill_9(data) -> None:
    """Nobody notices a compaction, nor that the compactor died."""
    with running(data, "--set", "store.compact_after_seconds=1") as service:
        start = datetime.now(UTC) - timedelta(minutes=30)
        expected = []
        for round_number in range(3):
            value = float(round_number)
            moment = start + timedelta(minutes=round_number)
            before = segments(data)
            assert service.post([record("a", moment, value)]).status == 202
            expected.append(value)
            service.kill_child("maintenance")
            until(lambda before=before: segments(data) - before)
            assert read(service, start) == (expected, {"a": {"snr_db": value}})
        counts = service.get("/account/state").json["usage"]
        assert counts["records_accepted_total"] == 3
        # The service's own compaction has its files before it has ended.
        until(lambda: not command(data, "compact")["tenants"][0]["busy"])
        (held,) = command(data, "stats")["tenants"]
        assert (held["rows"], held["values"], held["series"]) == (3, 3, 1)


def test_a_delete_beside_it_hides_at_once_and_is_removed_soon(data) -> None:
    """The command's tombstone reaches every worker, and the maintenance process."""
    with running(data) as service:
        start = datetime.now(UTC) - timedelta(minutes=30)
        moments = [start + timedelta(minutes=minute) for minute in range(3)]
        for value, moment in enumerate(moments):
            assert service.post([record("a", moment, float(value))]).status == 202
        assert read(service, start) == ([0.0, 1.0, 2.0], {"a": {"snr_db": 2.0}})
        span = ("--start", moments[1].isoformat(), "--end", datetime.now(UTC).isoformat())
        deleted = command(data, "delete", "--tenant", "acme", *span, "--yes")
        assert (deleted["rows"], deleted["measurements"]) == (2, ["link"])
        for one in service.each_worker():
            assert read(one, start) == ([0.0], {"a": {"snr_db": 0.0}})
        assert service.post([record("a", moments[1], 7.0)]).status == 202
        assert read(service, start) == ([0.0, 7.0], {"a": {"snr_db": 7.0}})
        until(lambda: command(data, "stats")["tenants"][0]["rows"] == 2)
        assert read(service, start) == ([0.0, 7.0], {"a": {"snr_db": 7.0}})


def test_retention_hides_at_once_and_removes_files(data) -> None:
    """D14: set while the service runs, seen by its next answer; space comes back."""
    with running(data) as service:
        now = datetime.now(UTC)
        old, new = now - timedelta(days=2), now - timedelta(minutes=5)
        assert service.post([record("b", old, 1.0), record("a", new, 2.0)]).status == 202
        command(data, "compact")
        before = segments(data)
        assert read(service, new)[1] == {"a": {"snr_db": 2.0}, "b": {"snr_db": 1.0}}
        command(data, "tenant", "set", "acme", "--retention", "1d")
        assert read(service, new) == ([2.0], {"a": {"snr_db": 2.0}})
        until(lambda: before - segments(data))
        (held,) = command(data, "stats")["tenants"]
        assert held["rows"] == 1
        assert read(service, new) == ([2.0], {"a": {"snr_db": 2.0}})


def test_upkeep_that_fails_is_seen_and_stops_nobody(data) -> None:
    """Log, metrics and /readyz name the tenant; the one behind is compacted."""
    key = prepare(data)
    account = command(data, "tenant", "create", "aaa")["account_id"]
    plane = data / "planes" / account / "plane.mdb"
    whole = plane.read_bytes()
    plane.write_bytes(bytes(len(whole)))
    options = ("--admin", "127.0.0.1:0", "--set", "store.compact_after_seconds=1")
    service = start(data, key, *options)
    try:
        assert service.post([record("a", datetime.now(UTC), 1.0)]).status == 202
        until(lambda: segments(data))

        def upkeep() -> tuple[bool, list]:
            check = ask(service, "/readyz").json["checks"]["upkeep"]
            return check["ok"], [failing["tenant"] for failing in check["failing"]]

        until(lambda: upkeep() == (True, ["aaa"]))
        until_well(lambda: ask(service, "/readyz"))
        name = 'fleetcast_upkeep_failing{tenant="aaa"}'
        assert f"{name} 1\n" in ask(service, "/metrics").body.decode()
        until(lambda: '"compaction failed"' in (data / "serve.log").read_text())
        plane.write_bytes(whole)
        until(lambda: upkeep() == (True, []))
        assert f"{name} 0\n" in ask(service, "/metrics").body.decode()
    finally:
        service.stop()


def test_d15_a_write_under_a_wrong_clock_is_named_in_metrics_and_log(data) -> None:
    key = prepare(data)
    (account,) = (data / "planes").iterdir()
    engine = Engine(data / "planes", load_master_key(data, Settings().security))
    ahead = NOW + timedelta(days=90)
    body = encode_records([record("a", ahead, 1.0)])
    now_ns = int(ahead.timestamp()) * 1_000_000_000
    engine.plane(account.name, "acme").write_json(body, now_ns=now_ns)
    engine.close()
    service = start(data, key, "--admin", "127.0.0.1:0")
    try:
        name = re.compile(r'fleetcast_tenant_clock_lead_seconds\{tenant="acme"\} (\d+)\n')

        def lead() -> re.Match[str] | None:
            return name.search(ask(service, "/metrics").body.decode())

        until(lambda: lead() is not None)
        found = lead()
        assert found is not None
        assert 89 * 86_400 < int(found[1]) <= 90 * 86_400

        def warnings() -> list[str]:
            lines = whole_lines(data / "serve.log")
            return [text for text in lines if "ahead of the clock" in text]

        (line,) = map(json.loads, until(warnings))
        assert (line["tenant"], line["lead_seconds"] > 89 * 86_400) == ("acme", True)
    finally:
        service.stop()


def test_upkeep_that_ends_again_and_again_is_not_ready(data) -> None:
    """/readyz stayed 200 while nothing was compacted any more."""
    with running(data, "--admin", "127.0.0.1:0") as service:
        until_well(lambda: ask(service, "/readyz"))

        def is_unready() -> bool:
            service.kill_child("maintenance")
            return ask(service, "/readyz").status == 503

        until(is_unready)
        assert ask(service, "/readyz").json["checks"]["upkeep"]["ok"] is False


def test_every_process_may_have_the_descriptors_the_system_grants(data) -> None:
    """gRPC and maintenance ended at 254 tenants under a soft limit of 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with running(data, "--grpc", "127.0.0.1:0", "--admin", "127.0.0.1:0") as service:
            limits = {resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in service.processes()}
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert limits == {(hard, hard)}


def test_nothing_of_a_deleted_tenant_stays_open(data) -> None:
    """J12: workers kept its files and key until they ended."""
    options = ("--grpc", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    with running(data, *options, "--set", "store.compact_after_seconds=1") as service:
        station = Station(service.ready)
        body = messages.encode(messages.record(messages.SECOND_NS * 1_750_000_000, "a"))
        assert station.write(body, service.key).status == "OK"
        station.close()

        def is_open_everywhere() -> bool:
            """In two workers, gRPC and maintenance; which worker takes a request is chance."""
            with futures.ThreadPoolExecutor(8) as pool:
                answers = pool.map(lambda n: service.post([record(f"a{n}", NOW, 1.0)]), range(64))
                assert {answer.status for answer in answers} == {202}
            return len(holders(service, data)) == 4

        until(is_open_everywhere)
        until(lambda: segments(data))
        command(data, "tenant", "delete", "acme", "--yes")
        assert list((data / "planes").iterdir()) == []
        until(lambda: not holders(service, data))


def holders(service: Service, data: Path) -> set[int]:
    """Processes of the service that have anything below `planes` open or mapped."""
    found = set()
    for pid in service.processes():
        texts = [Path(f"/proc/{pid}/maps").read_text()]
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed at this moment
                texts.append(str(link.readlink()))
        if any(f"{data}/planes/" in text for text in texts):
            found.add(pid)
    return found
