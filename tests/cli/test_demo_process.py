import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from fleetcast.cli.demo.fleet import FADING_LINK, SILENT_LINK, fleet_at, generated_fleet
from fleetcast.cli.demo.service import running_service
from fleetcast.cli.demo.summary import line_of, sparkline
from fleetcast.cli.demo.tour import Reply
from fleetcast.errors import OperatorError
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


def test_the_fleet_moves_on_with_a_link_in_the_rain_and_a_silent_link():
    newest = NOW.replace(second=0)
    now = {
        record["tags"]["entity_id"]: record["fields"]
        for record in fleet_at(newest + timedelta(minutes=30), newest)
    }
    then = [record for record in generated_fleet(NOW) if record["measurement"] == "link"]
    assert SILENT_LINK not in now
    assert SILENT_LINK in {record["tags"]["entity_id"] for record in then}
    dry = [of["fields"]["snr_db"] for of in then if of["tags"]["entity_id"] == FADING_LINK][:100]
    assert now[FADING_LINK]["snr_db"] < min(dry)
    assert now["sat-1"]["lon"] != now["sat-2"]["lon"]


def test_an_answer_is_a_line():
    assert sparkline([1, 2, 4]) == "▁▃█"
    assert sparkline([3.0]) == "▁"
    series = {"entity_id": "link-1", "channels": {"snr_db": [1.0, None, 2.0]}}
    shown = Reply("GET /topology/series?start=x", 200, {"interval": "15m", "series": [series]})
    assert line_of(shown).endswith("link-1 by 15m ▁█ 1.0 to 2.0 dB")
    refused = Reply("GET /predictions", 404, {"error": "predictions_not_enabled"})
    assert line_of(refused).endswith("predictions_not_enabled")


def test_if_the_service_does_not_start_the_end_of_its_log_is_shown(tmp_path, capsys):
    log = tmp_path / "service.log"
    with (
        pytest.raises(OperatorError, match="the service did not start"),
        running_service(tmp_path / "none", log),
    ):
        pass
    assert capsys.readouterr().err.splitlines() == log.read_text().splitlines()[-20:] != []


def tour(*options):
    done = subprocess.run(
        [sys.executable, "-m", "fleetcast", "demo", "--once", *options],
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_the_tour_is_a_screenful_and_names_no_address_of_a_service_that_has_ended():
    done = tour()
    lines = (done.stdout + done.stderr).splitlines()
    assert 10 <= len(lines) <= 24, lines
    assert "http://" not in done.stdout
    assert max(map(len, lines)) <= 120
    assert sum(" 200 " in line for line in lines) >= 7


def test_the_tour_ends_well():
    done = tour("--json")
    told = json.loads(done.stdout)
    assert told["key"].startswith("ftk_sandbox_")
    asked = {answer["request"].split("?")[0]: answer["status"] for answer in told["answers"]}
    assert asked["POST /telemetry"] == 202
    assert asked["gRPC TelemetryIngest.Write"] == 0
    for path in ("/health", "/topology", "/topology/series", "/account/state"):
        assert asked[f"GET {path}"] == 200
