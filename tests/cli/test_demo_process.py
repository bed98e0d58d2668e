import json
import subprocess
import sys
from datetime import UTC, datetime

from fleetcast.cli.demo.fleet import generated_fleet
from tests.waiting import PATIENCE_SECONDS

NOW = datetime(2026, 1, 31, 12, 34, 56, tzinfo=UTC)


def test_the_fleet_is_the_same_on_every_run():
    assert list(generated_fleet(NOW)) == list(generated_fleet(NOW))


def test_the_fleet_ends_now_and_holds_eight_days_of_pools():
    fleet = list(generated_fleet(NOW))
    newest = {record["measurement"]: record["time"] for record in fleet}
    for measurement in ("link", "satellite", "ground_station", "weather"):
        assert newest[measurement] == "2026-01-31T12:34:00+00:00"
    assert newest["pool_interval"] == "2026-01-31T12:15:00+00:00"
    east = [
        record
        for record in fleet
        if record["measurement"] == "pool_interval" and record["tags"]["entity_id"] == "pool-east"
    ]
    assert len(east) == 8 * 96


def test_the_tour_ends_well():
    done = subprocess.run(
        [sys.executable, "-m", "fleetcast", "demo", "--once", "--json"],
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tour = json.loads(done.stdout)
    assert tour["key"].startswith("ftk_sandbox_")
    asked = {answer["request"].split("?")[0]: answer["status"] for answer in tour["answers"]}
    assert asked["POST /telemetry"] == 202
    assert asked["gRPC TelemetryIngest.Write"] == 0
    for path in ("/health", "/topology", "/topology/series", "/account/state"):
        assert asked[f"GET {path}"] == 200
