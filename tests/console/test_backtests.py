"""Backtests of a tenant's stored rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.service.service import running

from .conftest import Operator
from .fleet import load

HOURS = 8


@pytest.fixture(scope="module")
def links(tmp_path_factory):
    """Operator of links that wrote each minute for eight hours, and of a newer link."""
    pytest.importorskip("onnxruntime")
    data = tmp_path_factory.mktemp("links") / "data"
    now = datetime.now(UTC)
    records = [
        {
            "measurement": "link",
            "time": (now - timedelta(minutes=minute)).isoformat(),
            "tags": {"entity_id": name},
            "fields": {"snr_db": 20.0 + (minute * 7 % 11) / 10},
        }
        for name, minutes in (("relay-1", HOURS * 60), ("relay-2", HOURS * 60), ("new", 2))
        for minute in range(minutes, 0, -1)
    ]
    with running(data, "--admin", "127.0.0.1:0") as service:
        load(data, "acme", iter(records))
        yield Operator(service, data).sign_in()


def test_the_release_is_judged_beside_simple_forecasts(links):
    answer = links.read("tenants/acme/backtests?family=snr")
    assert answer["model_version"].startswith("snr-")
    assert (answer["entities"], answer["entities_total"]) == (3, 3)
    assert answer["origins"] == 24 * 60 / answer["every_minutes"] + 1
    scores = {(row["horizon_minutes"], row["forecast"]): row for row in answer["scores"]}
    assert len(scores) == 4 * 3
    for horizon in (5, 15, 30, 60):
        # An origin every 15 minutes, from the first value on, with a truth before now.
        rows = [scores[horizon, who] for who in ("model", "last_value", "same_time")]
        possible = 2 * (HOURS * 60 - horizon) / answer["every_minutes"]
        assert possible - 4 <= rows[0]["count"] <= possible + 2
        assert len({row["count"] for row in rows}) == 1
        assert all(row["mean_pinball"] > 0 for row in rows)
        assert all(0 <= share <= 1 for row in rows for share in row["coverage"].values())


def test_a_tenant_without_pools_has_no_scores(links):
    answer = links.read("tenants/acme/backtests?family=demand")
    assert (answer["entities"], answer["entities_total"], answer["scores"]) == (0, 0, [])
