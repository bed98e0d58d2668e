from __future__ import annotations

import polars as pl

from fleetcast.client import Client


def test_forecasts_are_read_as_a_frame(fleet):
    with Client(fleet.service.ready["http"], fleet.key) as client:
        frame = client.predictions_frame(["link-1", "nobody"])
        one = client.predictions(["link-1"], horizon_minutes=15)
        assert client.account()["tenant_key"] == fleet.name
    assert frame["link_id"].to_list() == ["link-1"] * 4
    assert frame["horizon_minutes"].to_list() == [5, 15, 30, 60]
    assert frame["predicted_at"].dtype == pl.Datetime("ns", "UTC")
    ordered = (pl.col("snr_db_p10") <= pl.col("snr_db_p50")) & (
        pl.col("snr_db_p50") <= pl.col("snr_db_p90")
    )
    assert frame.select(ordered.all()).item()
    assert [item["horizon_minutes"] for item in one["items"]] == [15]
