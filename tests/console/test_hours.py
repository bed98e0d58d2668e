"""Channels of a window that begins before the retention: hours, with their minimum and maximum."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.service.service import command, running

from .conftest import Operator
from .fleet import load


def record(moment, minute):
    return {
        "measurement": "link",
        "time": moment.isoformat(),
        "tags": {"entity_id": "a"},
        "fields": {"x": float(minute % 60)},
    }


def test_o7_a_window_beyond_the_retention_has_hours(tmp_path):
    data = tmp_path / "data"
    now = datetime.now(UTC).replace(microsecond=0)
    with running(data, "--admin", "127.0.0.1:0") as service:
        minutes = range(5 * 1440, 0, -10)
        load(data, "acme", (record(now - timedelta(minutes=each), each) for each in minutes))
        command(data, "tenant", "set", "acme", "--retention", "2d", "--keep-hours", "1y")
        command(data, "compact", "acme")
        operator = Operator(service, data).sign_in()
        path = "tenants/acme/channels?measurement=link&entity_id=a&seconds="
        week = operator.read(f"{path}604800")
        assert week["names"] == ["x"]
        assert week["mean"]["interval"] == "1h"
        (low,), (mean,), (high,) = (week[of]["series"] for of in ("min", "mean", "max"))
        assert len(mean["times"]) >= 5 * 24
        pairs = zip(low["channels"]["x"], mean["channels"]["x"], high["channels"]["x"], strict=True)
        whole = list(pairs)[1:-1]
        assert all(high - low == 50.0 and low < mean < high for low, mean, high in whole)
        assert operator.read(f"{path}86400")["mean"]["interval"] == "5m"
