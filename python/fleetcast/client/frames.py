"""Answers of the API as polars frames; times are `Datetime("ns", "UTC")`.

The module imports polars, which is slow to load. Only the methods that return frames import it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fleetcast.extras import naming_the_extra

with naming_the_extra():
    import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def topology(answer: dict[str, Any]) -> pl.DataFrame:
    """Makes a row per entity: `entity_id`, `observed_at`, `tags` (JSON), and each field."""
    entities = answer["entities"]
    names = sorted({name for entity in entities for name in entity["fields"]})
    columns: dict[str, Any] = {
        "entity_id": _texts(entity["entity_id"] for entity in entities),
        "observed_at": _times(entity["observed_at"] for entity in entities),
        "tags": _texts(json.dumps(entity["tags"]) for entity in entities),
    }
    columns |= {name: [entity["fields"].get(name) for entity in entities] for name in names}
    return pl.DataFrame(columns)


def series(pages: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Makes a row per entity and instant of all pages: `entity_id`, `time`, and each channel."""
    parts = [
        pl.DataFrame(
            {
                "entity_id": _texts([one["entity_id"]] * len(one["times"])),
                "time": _times(one["times"]),
                **{
                    name: pl.Series(values, dtype=pl.Float64, strict=False)
                    for name, values in one["channels"].items()
                },
            }
        )
        for page in pages
        for one in page["series"]
    ]
    return pl.concat(parts, how="diagonal") if parts else pl.DataFrame()


def predictions(answer: dict[str, Any]) -> pl.DataFrame:
    """Makes a row per item: `link_id`, `horizon_minutes`, `predicted_at`, and each quantile."""
    items = answer["items"]
    names = list(dict.fromkeys(name for item in items for name in item["value"]))
    columns: dict[str, Any] = {
        "link_id": _texts(item["link_id"] for item in items),
        "horizon_minutes": pl.Series([i["horizon_minutes"] for i in items], dtype=pl.Int64),
        "predicted_at": _times(item["predicted_at"] for item in items),
    }
    columns |= {
        name: pl.Series([item["value"].get(name) for item in items], dtype=pl.Float64)
        for name in names
    }
    return pl.DataFrame(columns)


def rows(content: bytes, limit: int | None) -> pl.DataFrame:
    """Makes a frame of the first `limit` rows of a stream in Arrow's IPC format."""
    return pl.read_ipc_stream(content, n_rows=limit)


def _texts(texts: Iterable[str]) -> pl.Series:
    return pl.Series(list(texts), dtype=pl.String)


def _times(texts: Iterable[str]) -> pl.Series:
    return _texts(texts).str.to_datetime(time_unit="ns", time_zone="UTC")
