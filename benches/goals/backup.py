"""Figures of backups: beside copies of the same files that are synced, and beside ingest."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from benches.goals.effort import MASTER_KEY, new_plane
from benches.goals.table import Line, rate
from benches.harness.measure import alternate, cpu_seconds, wall_seconds
from benches.harness.paths import DATA
from benches.inputs import fleet
from fleetcast.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Event

    from benches.goals.effort import Effort
    from fleetcast._core import Plane
    from fleetcast.engine import SavedPlane

NAME, NOISE = "saved", "noise"
MEMORY = Path("/dev/shm")  # noqa: S108 - another file system than that of the store
_BODIES_PER_COMPACTION = 100
_PIECE_BYTES = 1 << 20
_NOISE_DAYS = 8
_NOISE_COLUMNS = 8
_NOISE_ROW_BYTES = 60
_DAY_NS = 86_400 * 10**9
_START_NS = int(fleet.START.timestamp()) * 10**9


def copied(source: Path, target: Path) -> None:
    """`cp` of a folder, each file and folder of the copy synced."""
    for path in [source, *sorted(source.rglob("*"))]:
        new = target / path.relative_to(source)
        if path.is_dir():
            new.mkdir()
            continue
        with path.open("rb") as old, new.open("wb") as file:
            shutil.copyfileobj(old, file, _PIECE_BYTES)
            os.fsync(file.fileno())
    for folder in [target, *(path for path in target.rglob("*") if path.is_dir())]:
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def saved(target: Path, planes: Path = DATA, name: str = NAME) -> SavedPlane:
    """A full backup of a plane into a new folder."""
    target.mkdir(parents=True)
    done = Engine(planes, MASTER_KEY).save_plane(name, target / "plane", 1, ())
    assert done is not None
    return done.plane


def restored(backup: Path, name: str, plane: SavedPlane, target: Path) -> None:
    """The plane of a backup in a new folder, compared."""
    Engine(target, MASTER_KEY).restore_plane(name, backup / "plane", plane)


def save_for_ever(folder: str, started: Event) -> None:
    """Backups into one folder, one right after the other."""
    engine, files = Engine(DATA, MASTER_KEY), ()
    Path(folder).mkdir()
    for number in itertools.count(1):
        done = engine.save_plane(NAME, Path(folder) / "plane", number, files)
        if done is not None:
            files = done.plane.files
        started.set()


def copy_lines(effort: Effort, name: str, planes: Path, backups: Path, where: str) -> list[Line]:
    """Full backup of a plane below `planes` onto the disk, and restore of one below `backups` onto
    it, beside copies of the same files.
    """
    first = backups / f"first-{name}"
    plane = saved(first, planes, name)
    length = sum(path.stat().st_size for path in (planes / name).rglob("*") if path.is_file())
    where = f"{where}, {length / 1e6:,.0f} MB"

    def timed(work: Callable[[Path], object]) -> float:
        with tempfile.TemporaryDirectory(dir=DATA) as folder:
            return wall_seconds(lambda: work(Path(folder) / "new"))

    seconds = alternate(
        effort.rounds,
        {
            "save": lambda: timed(lambda new: saved(new, planes, name)),
            "copy": lambda: timed(lambda new: copied(planes / name, new)),
            "restore": lambda: timed(lambda new: restored(first, name, plane, new)),
            "back": lambda: timed(lambda new: copied(first, new)),
        },
    )
    return [
        _line(f"backup, {where}", length, seconds["save"], seconds["copy"], 0.8),
        _line(f"restore, {where}", length, seconds["restore"], seconds["back"], 0.5),
    ]


def _line(figure: str, length: int, ours: float, reference: float, goal: float) -> Line:
    ratio = reference / ours
    text = f"cp and fsync of the same files: {length / reference / 1e6:,.0f} MB/s"
    return Line(
        figure, f"{length / ours / 1e6:,.0f} MB/s", text, ratio, f">= {goal:.0%}", ratio >= goal
    )


def ingest_line(effort: Effort, plane: Plane, bodies: list[bytes]) -> Line:
    """Rows per second of one writer, alone and while backups follow each other."""
    context = multiprocessing.get_context("spawn")

    def per_second() -> float:
        written, before = itertools.cycle(bodies), time.perf_counter()
        count = 0
        while time.perf_counter() - before < effort.drive_seconds:
            plane.write_json(next(written))
            count += fleet.BODY_RECORDS
        return count / (time.perf_counter() - before)

    def beside() -> float:
        started = context.Event()
        with tempfile.TemporaryDirectory(dir=DATA) as folder:
            child = context.Process(target=save_for_ever, args=(f"{folder}/backup", started))
            child.start()
            started.wait()
            try:
                return per_second()
            finally:
                child.kill()
                child.join()

    rates = alternate(effort.drive_rounds, {"alone": per_second, "beside": beside})
    return Line.at_least(
        "rows per second written while backups follow each other",
        rates["beside"], "without", rates["alone"], 0.9,
    )  # fmt: skip


def incremental_line(plane: Plane, bodies: list[bytes]) -> Line:
    """Bytes that a further backup writes, beside the sealed bytes that are new."""
    plane.compact(whole=True)
    plane.close()
    folder = DATA / "incremental"
    first = saved(folder)
    plane = Engine(DATA, MASTER_KEY).plane(NAME, "bench")
    for body in bodies:
        plane.write_json(body)
    new = plane.stats().log_bytes
    plane.close()
    done = Engine(DATA, MASTER_KEY).save_plane(NAME, folder / "plane", 2, first.files)
    assert done is not None
    ratio = done.bytes_written / new
    return Line(
        "bytes of a further backup", f"{done.bytes_written / 1e6:,.2f} MB",
        f"sealed bytes that are new: {new / 1e6:,.2f} MB", ratio, "<= 1.05x", ratio <= 1.05,
    )  # fmt: skip


def answers_line(effort: Effort, plane: Plane) -> Line:
    """The hash that a restore compares, beside the scan that it is made of."""
    seconds = alternate(
        effort.rounds,
        {
            "hash": lambda: cpu_seconds(plane.answers_hash),
            "scan": lambda: cpu_seconds(lambda: pl.DataFrame(plane.scan(0, 2**62))),
        },
    )
    values = plane.stats().stored_values
    return Line(
        "hash over all answers, values per CPU second", rate(values / seconds["hash"]),
        f"scan into a frame: {rate(values / seconds['scan'])}", seconds["scan"] / seconds["hash"],
    )  # fmt: skip


def write_noise(length: int) -> None:
    """A plane of about so many bytes that no codec makes smaller, in a segment for each day."""
    plane, dice = new_plane(NOISE), np.random.default_rng(14)
    rows = length // (_NOISE_DAYS * _NOISE_ROW_BYTES)
    for day in range(_NOISE_DAYS):
        times_ns = _START_NS + day * _DAY_NS + np.arange(rows) * (_DAY_NS // rows)
        columns = {f"noise_{at}": dice.random(rows) for at in range(_NOISE_COLUMNS)}
        frame = pl.DataFrame({"time": times_ns, "entity": np.arange(rows) % 500} | columns)
        mapping = {
            "time": "time", "time_unit": "ns", "measurement": "link", "entity": "entity",
        }  # fmt: skip
        plane.write_arrow(frame, mapping=mapping)
        plane.compact(whole=True)
    plane.close()


def backup_lines(effort: Effort) -> list[Line]:
    """All of them."""
    write_noise(effort.noise_bytes)
    plane = new_plane(NAME)
    for number, body in enumerate(fleet.bodies(effort.bodies * 200)):
        plane.write_json(body)
        if number % _BODIES_PER_COMPACTION == _BODIES_PER_COMPACTION - 1:
            plane.compact(whole=True)
    plane.close()
    lines = []
    for name, what in ((NAME, "fleet"), (NOISE, "noise")):
        with tempfile.TemporaryDirectory(dir=DATA) as near:
            lines += copy_lines(effort, name, DATA, Path(near), f"{what}, links")
        with tempfile.TemporaryDirectory(dir=MEMORY) as far:
            shutil.copytree(DATA / name, Path(far) / name)
            lines += copy_lines(effort, name, Path(far), Path(far), f"{what}, copies")
    plane = Engine(DATA, MASTER_KEY).plane(NAME, "bench")
    lines.append(answers_line(effort, plane))
    bodies = list(fleet.bodies(effort.bodies))
    return [*lines, ingest_line(effort, plane, bodies), incremental_line(plane, bodies)]
