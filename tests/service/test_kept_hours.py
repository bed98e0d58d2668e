"""O7: hours that outlive their rows, over HTTP, by the commands and in a backup."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.waiting import until

from .service import FLEETCAST, command, create_key, running, start

if TYPE_CHECKING:
    from pathlib import Path

    from .service import Service

AGGREGATIONS = ("mean", "min", "max", "last")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def record(minute: int, moment: datetime) -> dict:
    return {
        "measurement": "link",
        "time": moment.isoformat(),
        "tags": {"entity_id": f"l{minute % 2}"},
        "fields": {"snr_db": minute % 17 / 10, "rain_mm": minute % 5 * 0.1},
    }


def refusal(data: Path, *arguments: str) -> str:
    command = [*FLEETCAST, *arguments, "--data", str(data)]
    run = subprocess.run(command, capture_output=True, check=False, text=True)
    assert run.returncode == 1, run
    return run.stderr


def hours(service: Service, first: datetime) -> list[list]:
    """Returns the series of the two links for one aggregation after another."""
    end = first + timedelta(days=2)
    span = {"start": first.isoformat(), "end": end.isoformat(), "interval": "1h"}
    question = {"entity_id": ["l0", "l1"], "measurement": "link", **span}
    answers = [service.get("/topology/series", agg=agg, **question) for agg in AGGREGATIONS]
    assert [answer.status for answer in answers] == [200] * 4
    return [answer.json["series"] for answer in answers]


def stored(data: Path) -> tuple[int, int]:
    (of_tenant,) = command(data, "stats")["tenants"]
    return of_tenant["rows"], of_tenant["kept_hours"]


def test_o7_hours_outlive_rows(data: Path, tmp_path: Path) -> None:
    """Answers by the hour stay as they were when rows go, and in a restored installation."""
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight - timedelta(days=6)
    rows = [record(minute, first + timedelta(minutes=minute)) for minute in range(1_500)]
    with running(data) as service:
        for at in range(0, len(rows), 1_000):
            assert service.post(rows[at : at + 1_000]).status == 202
        command(data, "compact")
        before = hours(service, first)
        assert len(before[0][0]["times"]) == 25
        shown = command(data, "tenant", "set", "acme", "--retention", "2d", "--keep-hours", "5y")
        assert (shown["retention"], shown["keep_hours"]) == ("2d", "1825d")
        assert hours(service, first) == before
        until(lambda: stored(data) == (0, 50))
        assert hours(service, first) == before
        cut = ("--start", first.isoformat(), "--end", (first + timedelta(minutes=90)).isoformat())
        refused = refusal(data, "delete", "--tenant", "acme", *cut, "--yes")
        assert "it can only be deleted as a whole" in refused
        command(data, "backup", tmp_path / "saved")
        assert command(data, "verify")["tenants"][0]["damages"] == []
    restored = tmp_path / "restored"
    restored.mkdir()
    shutil.copy2(data / "master.key", restored / "master.key")
    command(restored, "restore", tmp_path / "saved")
    service = start(restored, create_key(restored, "acme"))
    try:
        assert hours(service, first) == before
        two = ("--start", first.isoformat(), "--end", (first + timedelta(hours=2)).isoformat())
        gone = command(restored, "delete", "--tenant", "acme", "--entity", "l1", *two, "--yes")
        assert (gone["rows"], gone["hours"]) == (0, 2)
        left = hours(service, first)
        assert [len(series["times"]) for series in left[0]] == [25, 23]
        command(restored, "tenant", "set", "acme", "--keep-hours", "off")
        assert [len(series["times"]) for series in hours(service, first)[0]] == [0, 0]
    finally:
        service.end()


def test_o7_hours_are_kept_longer_than_rows(data: Path) -> None:
    command(data, "init")
    command(data, "tenant", "create", "acme", "--retention", "30d")
    refused = refusal(data, "tenant", "set", "acme", "--keep-hours", "30d")
    assert "hours must be kept longer than rows" in refused
    refused = refusal(data, "tenant", "set", "acme", "--keep-hours", "5 years")
    assert "is not a duration" in refused
    assert command(data, "tenant", "show", "acme")["keep_hours"] is None
