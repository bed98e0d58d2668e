"""How much is measured, and where."""

from __future__ import annotations

from dataclasses import dataclass

from benches.harness.paths import DATA
from fleetcast._core import Plane, Planes

MASTER_KEY = bytes(range(32))


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    bodies: int
    drive_rounds: int
    drive_seconds: float
    acknowledgements: int
    topology_rounds: int
    series_rounds: int
    month_days: int
    retained_days: int
    restarts: int
    held_seconds: float
    noise_bytes: int


FULL = Effort(
    rounds=15,
    bodies=32,
    drive_rounds=5,
    drive_seconds=4.0,
    acknowledgements=400,
    topology_rounds=15,
    series_rounds=200,
    month_days=30,
    retained_days=30,
    restarts=5,
    held_seconds=60.0,
    noise_bytes=500_000_000,
)
QUICK = Effort(
    rounds=3,
    bodies=8,
    drive_rounds=2,
    drive_seconds=1.0,
    acknowledgements=60,
    topology_rounds=3,
    series_rounds=20,
    month_days=2,
    retained_days=3,
    restarts=2,
    held_seconds=5.0,
    noise_bytes=60_000_000,
)


def new_plane(name: str) -> Plane:
    """A fresh plane on the disk of the repository."""
    planes = Planes.in_directory(DATA)
    planes.create(name, MASTER_KEY)
    return planes.open(name, MASTER_KEY, "bench")
