"""A month of sixteen entities out of objects that no cache has, beside files and bare GETs."""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from benches.cluster.s3 import Bucket
from benches.goals.month import TENANT, plane_of
from benches.goals.table import Line, ms
from benches.harness.servers import Getter
from benches.inputs import month
from fleetcast.config import Override
from fleetcast.config.sections import POSTGRESQL
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.making import MASTER_KEY_FILE, make_data_directory
from fleetcast.installation.opening import opened
from tests.service import service

if TYPE_CHECKING:
    from pathlib import Path

ENTITIES = 16
ROUNDS = 5
FETCHES = 16  # at once, as a node does
PIECE_BYTES = 1 << 20
GOAL_GETS, GOAL_SECONDS = 10, 0.1


def cold_lines(folder: Path, days: int) -> list[Line]:
    """The read of a dashboard as the first one after a start."""
    history = month.until_now(ENTITIES, days)
    files, node = folder / "files", folder / "node"
    key = service.prepare(files, TENANT)
    with plane_of(files) as plane:
        history.fill(plane)
    make_data_directory(DataDirectory(node), service.ENVIRONMENT, os.environ, store=store())
    service.command(files, "backup", str(folder / "backup"))
    master = ("--master-key", str(files / MASTER_KEY_FILE))
    service.command(node, "restore", str(folder / "backup"), "--tenant", TENANT, *master)
    service.command(node, "compact")
    node_key = service.create_key(node, TENANT)
    ours: dict[str, list[float]] = {"files": [], "objects": [], "again": [], "GETs": [], "GET": []}
    for _ in range(ROUNDS):
        ours["files"].append(reads(files, key, history)[0])
        shutil.rmtree(node / "cache", ignore_errors=True)
        first, second = reads(node, node_key, history)
        ours["objects"].append(first)
        ours["again"].append(second)
        pieces = [path.name.split(".") for path in (node / "cache" / "objects").glob("*.*")]
        whole, one, size = bare(node, pieces)
        ours["GETs"].append(whole)
        ours["GET"].append(one)
    found = {name: statistics.median(seconds) for name, seconds in ours.items()}
    goal = GOAL_SECONDS + GOAL_GETS * found["GET"]
    of = f"{days}-day series of {ENTITIES} entities, hourly means"
    return [
        Line(
            f"{of}, first read after a start, segments from S3", ms(found["objects"]),
            f"{len(pieces)} bare GETs, {size / 1e6:.1f} MB, {FETCHES} at once: {ms(found['GETs'])}",
            found["objects"] / found["GETs"],
            f"<= {ms(goal)} (100 ms + 10 GETs)", found["objects"] <= goal,
        ),
        Line(
            "the same, segments in files, embedded", ms(found["files"]),
            f"from S3: {ms(found['objects'])}", found["files"] / found["objects"],
        ),
        Line("the same from S3, once more", ms(found["again"])),
        Line("one such GET alone", ms(found["GET"])),
    ]  # fmt: skip


def store() -> list[Override]:
    """Settings of an installation of its own, in a part of the bucket."""
    bucket, _, options = os.environ["OBJECTS"].partition("?")
    found = [each for each in service.shared_store() if each.name != "store.objects"]
    assert any(each.text == POSTGRESQL for each in found)
    return [*found, Override("store.objects", f"{bucket}/cold?{options}", "a benchmark")]


def reads(data: Path, key: str, history: month.Month) -> tuple[float, float]:
    """Seconds of the first and the second read of a service that was just started.

    The tenant is open before, by a read of its newest rows.
    """
    running = service.start(data, key, "--workers", "1", "--set", "limits.point_budget=100000")
    getter = Getter(running.address, key)
    try:
        getter.get("/topology", freshness_seconds=60)
        start, end = (
            time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(instant_ns // month.SECOND_NS))
            # All but its first hour: the service answers 30 days back from now.
            for instant_ns in (history.start_ns + month.HOUR_NS, history.end_ns)
        )
        asked = {"entity_id": history.ids, "start": start, "end": end}
        asked |= {"interval": "1h", "measurement": "link"}
        return getter.get("/topology/series", **asked), getter.get("/topology/series", **asked)
    finally:
        getter.close()
        running.stop()


def bare(node: Path, pieces: list[list[str]]) -> tuple[float, float, int]:
    """Seconds of GETs of the same pieces, many at once; the median of one alone; their bytes."""
    with opened(DataDirectory(node), os.environ) as installation:
        account = installation.tenants.get(TENANT).account_id.replace("-", "")
        url = installation.settings.store.objects
    senders = [Bucket(url) for _ in range(FETCHES)]
    shares = [pieces[number::FETCHES] for number in range(FETCHES)]

    def fetch(bucket: Bucket, share: list[list[str]]) -> list[tuple[float, int]]:
        return [
            bucket.get(f"{account}/{segment}", int(piece) * PIECE_BYTES, PIECE_BYTES)
            for segment, piece in share
        ]

    began = time.perf_counter()
    with ThreadPoolExecutor(FETCHES) as pool:
        done = list(itertools.chain(*pool.map(fetch, senders, shares)))
    seconds = time.perf_counter() - began
    alone = [took for took, _ in fetch(senders[0], pieces[:FETCHES])]
    return seconds, statistics.median(alone), sum(size for _, size in done)
