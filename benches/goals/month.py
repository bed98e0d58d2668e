"""Figures of a store that holds a month: density, windows, the start after a kill."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import orjson
import polars as pl

from benches.goals.effort import new_plane
from benches.goals.export import export_lines, scan_lines
from benches.goals.table import Line, ms
from benches.harness.measure import alternate, wall_seconds
from benches.harness.paths import DATA
from benches.harness.servers import Getter, running_body_only, service
from benches.inputs import fleet, month
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benches.goals.effort import Effort
    from fleetcast._core import Plane

ENTITIES = 100
WINDOW_ENTITIES = 16
RETAINED_ENTITIES = 100_000
TENANT = "month"


@contextmanager
def plane_of(data: Path) -> Iterator[Plane]:
    """The tenant's store in a data directory, opened beside or without the service."""
    with opened(DataDirectory(data), os.environ) as installation:
        tenant = installation.tenants.get(TENANT)
        yield installation.engine.plane(tenant.account_id, tenant.name)


def month_lines(effort: Effort) -> list[Line]:
    """All of them."""
    data = DATA / "month"
    key = service.prepare(data, TENANT)
    history = month.until_now(ENTITIES, effort.month_days)
    rows = f"{history.rows_per_entity * ENTITIES / 1e6:.1f} M rows"
    uncompacted = DATA / "month-uncompacted"
    service.prepare(uncompacted, TENANT)
    with plane_of(data) as plane, plane_of(uncompacted) as log:
        history.fill(plane, log)
        lines = density_lines(plane, data, rows)
    with plane_of(data) as plane:
        lines += window_lines(effort, plane, history, parquet_of(plane, history))
        lines += read_lines(plane, history)
        lines += export_lines(effort, data, uncompacted, history, plane)
        lines += scan_lines(effort, plane, history, DATA / "export.parquet")
    shutil.rmtree(uncompacted)
    lines += service_lines(effort, data, key, history, rows)
    lines += verify_lines(data, rows)
    shutil.rmtree(data)
    return lines + retained_lines(effort)


def density_lines(plane: Plane, data: Path, rows: str) -> list[Line]:
    """Bytes that a value takes on disk, everything of the tenant included."""
    stats = plane.stats()
    files = [path for path in (data / "planes").rglob("*") if path.is_file()]
    density = sum(path.stat().st_blocks * 512 for path in files) / stats.values
    return [
        Line(
            f"bytes per value after compaction, everything, {rows}",
            f"{density:.3f} B", "8-byte raw values: 8 B", density / 8, "<= 0.92 B", density <= 0.92,
        ),
    ]  # fmt: skip


def parquet_of(plane: Plane, history: month.Month) -> Path:
    """The same rows in a Parquet file, sorted by entity and time, one row group an entity."""
    file = DATA / "month.parquet"
    window = {"start_ns": history.start_ns, "end_ns": history.end_ns, "now_ns": history.end_ns}
    frames = [
        pl.DataFrame(plane.series_frame(entity_ids=[name], measurement="link", **window))
        for name in history.ids
    ]
    pl.concat(frames).write_parquet(file, row_group_size=history.rows_per_entity)
    return file


def hourly_means(file: Path, history: month.Month, ids: list[str]) -> np.ndarray:
    """(entity, hour, field) means with numpy, of the rows that Parquet's statistics leave."""
    wanted = pl.col("entity_id").is_in(ids)
    rows = pl.scan_parquet(file).filter(wanted).collect()
    hours = history.days * 24
    entity = rows["entity_id"].rle_id().to_numpy().astype(np.int64)
    hour = (rows["time"].to_physical().to_numpy() - history.start_ns) // month.HOUR_NS
    bins = entity * hours + hour
    counts = np.bincount(bins, minlength=len(ids) * hours)
    sums = [
        np.bincount(bins, rows[name].to_numpy(), minlength=len(ids) * hours)
        for name in month.FIELDS
    ]
    return (np.stack(sums, axis=-1) / counts[:, None]).reshape(len(ids), hours, -1)


def window_lines(effort: Effort, plane: Plane, history: month.Month, parquet: Path) -> list[Line]:
    """Hourly means of some entities over all days, beside numpy over Parquet."""
    ids = history.ids[:WINDOW_ENTITIES]

    def ours() -> bytes:
        return plane.series_json(
            entity_ids=ids, measurement="link", start_ns=history.start_ns, end_ns=history.end_ns,
            interval="1h", agg="mean", point_budget=1_000_000, now_ns=history.end_ns,
        )  # fmt: skip

    snr = orjson.loads(ours())["series"][0]["channels"]["snr_db"]
    expected = hourly_means(parquet, history, ids)[0, :, month.FIELDS.index("snr_db")]
    assert np.allclose(snr, expected), (snr[:3], expected[:3])
    seconds = alternate(
        effort.rounds,
        {
            "ours": lambda: wall_seconds(ours),
            "numpy": lambda: wall_seconds(lambda: hourly_means(parquet, history, ids)),
        },
    )
    values = WINDOW_ENTITIES * history.rows_per_entity * len(month.FIELDS)
    rate = values / seconds["ours"]
    figure = f"{WINDOW_ENTITIES} entities x {history.days} d at 10 s, 1 h mean"
    return [
        Line.at_most(figure, seconds["ours"], "numpy over Parquet", seconds["numpy"], 0.1),
        Line(
            "the same, values per second", f"{rate / 1e6:,.0f} M/s", "", None, ">= 1,000 M/s",
            rate >= 1e9,
        ),
    ]  # fmt: skip


def read_lines(plane: Plane, history: month.Month) -> list[Line]:
    """Times of other reads, the best of several: for orientation."""
    end_ns, now = history.end_ns, {"now_ns": history.end_ns}

    def series(count: int, span_ns: int, interval: str | None) -> Callable[[], bytes]:
        ids = history.ids[:count]
        query = {"start_ns": end_ns - span_ns, "end_ns": end_ns, "interval": interval, **now}
        return lambda: plane.series_json(
            entity_ids=ids, measurement="link", point_budget=1_000_000, **query
        )

    past = {"as_of_ns": end_ns - history.days * month.DAY_NS // 2, "freshness_ns": month.HOUR_NS}
    assert len(orjson.loads(plane.latest_json(**past, **now))["entities"]) == ENTITIES
    reads = {
        f"newest samples of {ENTITIES} entities as of a past instant": (
            lambda: plane.latest_json(**past, **now)
        ),
        "1 entity, 1 h raw, engine": series(1, month.HOUR_NS, None),
        "1 entity, 1 d, 1 m mean, engine": series(1, month.DAY_NS, "1m"),
        "16 entities, 1 d, 5 m mean, engine": series(16, month.DAY_NS, "5m"),
    }
    return [
        Line(name, ms(min(wall_seconds(read) for _ in range(7)))) for name, read in reads.items()
    ]


def service_lines(
    effort: Effort, data: Path, key: str, history: month.Month, rows: str
) -> list[Line]:
    """A dashboard's read over HTTP, and the start after `kill -9` of everything."""
    running = service.start(data, key)
    lines = dashboard_lines(effort, running.address, key, history)
    running.kill()
    newest = {"freshness_seconds": 86_400}
    ready, first = [], []
    for _ in range(effort.restarts):
        start = time.perf_counter()
        running = service.start(data, key)
        ready.append(time.perf_counter() - start)
        answer = running.get("/topology", **newest)
        first.append(time.perf_counter() - start)
        assert len(answer.json["entities"]) == ENTITIES
        running.kill()
    empty = DATA / "empty"
    empty_key = service.prepare(empty, TENANT)
    start = time.perf_counter()
    running = service.start(empty, empty_key)
    bare = time.perf_counter() - start
    running.stop()
    shutil.rmtree(empty)
    best = min(ready)
    return [
        *lines,
        Line(
            f"kill -9 to ready, {rows}", ms(best), f"start of an empty service: {ms(bare)}",
            best / bare, "<= 1 s", best <= 1,
        ),
        Line("kill -9 to the first GET /topology", ms(min(first))),
    ]  # fmt: skip


def dashboard_lines(effort: Effort, address: str, key: str, history: month.Month) -> list[Line]:
    """One entity's last three hours in hourly means, beside a handler that returns a constant."""
    start = history.end - timedelta(hours=3)
    asked = {
        "entity_id": history.ids[0],
        "measurement": "link",
        "start": f"{start:%Y-%m-%dT%H:%M:%SZ}",
        "end": f"{history.end:%Y-%m-%dT%H:%M:%SZ}",
        "interval": "1h",
        "agg": "mean",
    }
    with running_body_only() as (_, constant_address):
        ours, constant = Getter(address, key), Getter(constant_address, key)
        seconds = alternate(
            effort.series_rounds,
            {
                "ours": lambda: ours.get("/topology/series", **asked),
                "constant": lambda: constant.get("/topology/series", **asked),
            },
        )
        ours.close()
        constant.close()
    return [
        Line.at_most(
            "1 entity, last 3 h, 1 h mean, whole HTTP answer, p50",
            seconds["ours"], "handler that returns a constant", seconds["constant"], 1.5,
        ),
    ]  # fmt: skip


def verify_lines(data: Path, rows: str) -> list[Line]:
    """`fleetcast verify` of everything."""
    seconds = wall_seconds(lambda: service.command(data, "verify"))
    return [Line(f"fleetcast verify, {rows}", f"{seconds:.1f} s")]


def retained_lines(effort: Effort) -> list[Line]:
    """`GET /topology` of many entities after a day, and after many."""
    today = datetime.now(UTC) - timedelta(seconds=60)
    planes = {}
    for name, days in (("a day", 1), ("all days", effort.retained_days)):
        plane = planes[name] = new_plane(name.replace(" ", "-"))
        for day in range(days - 1, -1, -1):
            for body in fleet.wide_bodies(RETAINED_ENTITIES, today - timedelta(days=day)):
                plane.write_json(body)
            plane.compact(whole=True)
    freshness_ns = month.DAY_NS // 2
    for plane in planes.values():
        newest = orjson.loads(plane.latest_json(freshness_ns=freshness_ns))["entities"]
        assert len(newest) == RETAINED_ENTITIES
    seconds = alternate(
        effort.topology_rounds,
        {
            name: lambda plane=plane: wall_seconds(
                lambda: plane.latest_json(freshness_ns=freshness_ns)
            )
            for name, plane in planes.items()
        },
    )
    return [
        Line.at_most(
            f"newest of {RETAINED_ENTITIES:,} entities, {effort.retained_days} retained days",
            seconds["all days"], "the same, 1 retained day", seconds["a day"], 1.1,
        ),
        Line(
            f"describe, {RETAINED_ENTITIES:,} entities",
            ms(min(wall_seconds(planes["all days"].describe) for _ in range(5))),
        ),
    ]  # fmt: skip
