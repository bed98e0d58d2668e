"""`Client.scan`, and a lazy frame over a client, against the real service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from fleetcast.client import ApiError, Client
from fleetcast.polars import scan

START = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
SPAN = {"start": START, "end": START + timedelta(minutes=30)}


def test_stored_rows_are_read_whole_and_lazily(own):
    service = own("--set", "adapters.address=127.0.0.1:0")
    tags = ({"entity_id": "l1", "site": "north"}, {"entity_id": "l2", "site": "south"})
    records = [
        {
            "measurement": "link",
            "time": START + timedelta(milliseconds=number),
            "tags": tags[number % 2],
            "fields": {"n": float(number), "note": f"é{number}"},
        }
        for number in range(20_000)
    ]
    with Client(service.ready["http"], own.key) as client:
        client.write(records)
        with pytest.raises(ApiError) as raised:
            client.scan(**SPAN)
        assert raised.value.code == "not_found"
    with Client(service.ready["adapters"], own.key) as client:
        rows = client.scan(**SPAN)
        assert rows.columns == ["time", "measurement", "tags", "n", "note"]
        assert sorted(rows["n"].to_list()) == [float(number) for number in range(20_000)]
        assert client.scan(**SPAN, fields=["n"], entity_ids=["l2"], limit=7)["n"][6] == 13.0

        lazy = scan(client, **SPAN, measurement="link")
        one = lazy.filter(pl.col("entity_id") == "l2", pl.col("n") < 100).select("n").collect()
        assert one["n"].to_list() == [float(number) for number in range(1, 100, 2)]
        south = lazy.filter(pl.col("tags").map.get("site") == "south")
        assert south.select(pl.len()).collect().item() == 10_000
        assert lazy.head(3).collect().height == 3
        assert lazy.filter(pl.col("entity_id") == "none").collect().is_empty()
