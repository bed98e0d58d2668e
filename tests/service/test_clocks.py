"""The whole service under a wall clock that steps: by a year either way, and by 1,024 weeks."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.clocks.wall import ROLLOVER_SECONDS, YEAR_SECONDS, WallClock
from tests.grpc import messages
from tests.grpc.station import Station
from tests.waiting import until, until_well

from .service import FLEETCAST, Answer, Service, ask, command, prepare, running, start

if TYPE_CHECKING:
    from pathlib import Path

STEPS = (-YEAR_SECONDS, 0, YEAR_SECONDS, 0, ROLLOVER_SECONDS, 0)
LONG_AGO = -40 * YEAR_SECONDS
LOCKED = ("--set", "limits.lockout_failures=3", "--set", "limits.lockout_seconds=86400")
DEADLINES = (
    *("--set", "http.read_deadline_seconds=600"),
    *("--set", "http.request_deadline_seconds=600"),
)


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WallClock:
    """The clock of all that the test starts; the test itself has the right time."""
    made = WallClock(tmp_path)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def to_come(entity: str) -> dict:
    """A record that is stored with the time of the service's clock."""
    tags = {"entity_id": entity}
    return {"measurement": "link", "time": "2200-01-01", "tags": tags, "fields": {"snr_db": 1.0}}


def shown(service: Service) -> set[str]:
    return {each["entity_id"] for each in service.get("/topology").json["entities"]}


def metric(service: Service, name: str) -> str:
    lines = ask(service, "/metrics").body.decode().splitlines()
    return next((line.rpartition(" ")[2] for line in lines if line.startswith(f"{name} ")), "")


def segments(data: Path) -> set[str]:
    return {path.name for path in data.glob("planes/*/segments/*")}


def test_o5_the_service_goes_on_whatever_the_clock_does(data: Path, clock: WallClock) -> None:
    """Writes, reads, keys, requests under way, limits, upkeep and forecasts, after each step."""
    options = ("--admin", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
    upkeep = ("--set", "store.compact_after_seconds=1")
    with running(data, *options, *upkeep, *DEADLINES, *LOCKED) as service:
        station = Station(service.ready)
        for number, ahead in enumerate(STEPS):
            wire = service.connect()
            wire.putrequest("GET", "/topology")
            wire.putheader("x-api-key", service.key)
            before = segments(data)
            clock.set_ahead(ahead)
            wire.endheaders()  # its deadline began before the step
            assert wire.getresponse().status == 200
            wire.close()
            for one in service.each_worker():
                assert one.post([to_come(f"http-{number}")]).status == 202
                assert f"http-{number}" in shown(one)
            body = messages.encode(messages.record(messages.SECOND_NS * 1_750_000_000, "a"))
            assert station.write(body, service.key).status == "OK"
            until(lambda before=before: segments(data) - before)
            until_well(lambda: ask(service, "/readyz"))
            forecasts = service.get("/predictions", link_ids="http-0")
            assert forecasts.status == 200
        station.close()
        (held,) = command(data, "stats")["tenants"]
        assert held["rows"] == len(STEPS) * 3
        bad = "ftk_sandbox_" + "a" * 20
        assert [service.get("/topology", key=bad).status for _ in range(3)] == [401] * 3
        for ahead in STEPS:
            clock.set_ahead(ahead)
            refused = service.get("/topology")
            assert (refused.status, refused.json["error"]) == (429, "auth_lockout")
            assert 0 < int(refused.headers["Retry-After"]) <= 86_400


def test_o2_a_clock_that_jumped_takes_nothing_from_anybody(data: Path, clock: WallClock) -> None:
    """A moment 1,024 weeks ahead, and one compaction with a retention removed everything."""
    with running(data, "--admin", "127.0.0.1:0") as service:
        kept = datetime.now(UTC) - timedelta(hours=1)
        record = {**to_come("a"), "time": kept.isoformat()}
        assert service.post([record]).status == 202
        command(data, "tenant", "set", "acme", "--retention", "1d")
        command(data, "compact")
        clock.set_ahead(ROLLOVER_SECONDS)
        name = 'fleetcast_tenant_expiry_held{tenant="acme"}'
        until(lambda: metric(service, name) == "1")
        until(lambda: "nothing expires" in (data / "serve.log").read_text())
        # Gateways go on writing: what they write vouches for no clock.
        assert service.post([to_come("b")]).status == 202
        (compacted,) = command(data, "compact")["tenants"]
        assert (compacted["expired"], compacted["held"] > 0) == (0, True)
        found = {finding["check"]: finding for finding in diagnosis(data)}
        assert "ahead of its newest write" in found["tenant acme"]["detail"]
        asked = {
            "entity_id": "a",
            "measurement": "link",
            "as_of_utc": datetime.now(UTC).isoformat(),
        }
        found = service.get("/topology", **asked, freshness_seconds=604_800).json["entities"]
        assert "a" in {each["entity_id"] for each in found}
        clock.set_ahead(0)
        until(lambda: metric(service, name) == "0")
        (stats,) = command(data, "stats")["tenants"]
        assert stats["rows"] == 2


def test_o2_an_operator_who_knows_the_clock_is_right_has_old_rows_removed(
    data: Path, clock: WallClock
) -> None:
    """The tenant fell silent; the service itself needs an hour to be sure."""
    with running(data) as service:
        assert service.post([to_come("a")]).status == 202
    command(data, "tenant", "set", "acme", "--retention", "1d")
    clock.set_ahead(YEAR_SECONDS)
    (left,) = command(data, "compact")["tenants"]
    assert (left["expired"], left["held"]) == (0, 1)
    (removed,) = command(data, "compact", "--trust-clock")["tenants"]
    assert (removed["expired"], removed["held"]) == (1, 0)


def diagnosis(data: Path) -> list[dict]:
    """The findings of `doctor`, among which a wrong clock makes failures."""
    run = subprocess.run(
        [*FLEETCAST, "doctor", "--data", str(data), "--json"], capture_output=True, check=False
    )
    return json.loads(run.stdout)["checks"]


def write_line(service: Service) -> Answer:
    """A write by line protocol, without a time."""
    other = Service(service.process, {"http": service.ready["adapters"]}, service.key)
    fields = {"authorization": f"Token {service.key}"}
    return other.request("POST", "/api/v2/write", body=b"link,host=a snr_db=1", headers=fields)


def test_o2_a_clock_before_2020_stores_nothing(data: Path, clock: WallClock) -> None:
    """Every record got the time of that clock, for good."""
    options = ("--grpc", "127.0.0.1:0", "--set", "adapters.address=127.0.0.1:0")
    key = prepare(data)
    service = start(data, key, *options)
    try:
        station = Station(service.ready)
        body = messages.encode(messages.record(messages.SECOND_NS * 1_750_000_000, "a"))
        for _ in range(2):  # the first may open the plane
            assert service.post([to_come("a")]).status == 202
            assert write_line(service).status == 204
            assert station.write(body, key).status == "OK"
        clock.set_ahead(LONG_AGO)
        for _ in range(3):
            refused = service.post([to_come("a")])
            assert (refused.status, refused.json["error"]) == (503, "telemetry_unavailable")
            assert write_line(service).status == 503
            assert station.write(body, key).refusal == ("UNAVAILABLE", "telemetry_unavailable")
        assert service.get("/topology").status == 200
        clock.set_ahead(0)
        assert service.post([to_come("b")]).status == 202
        assert write_line(service).status == 204
        assert station.write(body, key).status == "OK"
        station.close()
    finally:
        service.stop()
