"""The maintenance process of a running service: compaction, retention, death."""

from __future__ import annotations

import os
import signal
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from .service import command, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_SECONDS = 60.0


def record(entity: str, time: datetime, value: float) -> dict:
    return {
        "measurement": "link",
        "time": time.isoformat(),
        "tags": {"entity_id": entity},
        "fields": {"snr_db": value},
    }


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, "it does not come to be"
        time.sleep(0.05)


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
    """Issue 6: nobody notices a compaction, nor that the compactor died."""
    with running(data, "--set", "store.compact_after_seconds=1") as service:
        start = datetime.now(UTC) - timedelta(minutes=30)
        expected = []
        for round_number in range(3):
            value = float(round_number)
            moment = start + timedelta(minutes=round_number)
            before = segments(data)
            assert service.post([record("a", moment, value)]).status == 202
            expected.append(value)
            os.kill(service.arbiter("maintenance"), signal.SIGKILL)
            until(lambda before=before: segments(data) - before)
            assert read(service, start) == (expected, {"a": {"snr_db": value}})
        counts = service.get("/account/state").json["usage"]
        assert counts["records_accepted_total"] == 3
        assert command(data, "compact")["tenants"][0]["busy"] is False
        (held,) = command(data, "stats")["tenants"]
        assert (held["rows"], held["values"], held["series"]) == (3, 3, 1)


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


def test_the_space_of_a_deleted_tenant_comes_back(data) -> None:
    """J12: key, segments and all, while the service runs."""
    with running(data, "--set", "store.compact_after_seconds=1") as service:
        assert service.post([record("a", datetime.now(UTC), 1.0)]).status == 202
        until(lambda: segments(data))
        command(data, "tenant", "delete", "acme", "--yes")
        assert list((data / "planes").iterdir()) == []

        def is_open() -> bool:
            links = f"/proc/{service.arbiter('maintenance')}/fd"
            return any("plane.mdb" in os.readlink(f"{links}/{fd}") for fd in os.listdir(links))  # noqa: PTH115, PTH208

        until(lambda: not is_open())
