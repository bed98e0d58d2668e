"""How much is measured, and where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fleetcast._core import Plane

DATA = Path(__file__).parent.parent / "target" / "bench-data"
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


FULL = Effort(15, 32, 5, 4.0, 400, 15, 200)
QUICK = Effort(3, 8, 2, 1.0, 60, 3, 20)


def new_plane(name: str) -> Plane:
    """A fresh plane on the disk of the repository."""
    Plane.create(str(DATA / name), MASTER_KEY)
    return Plane.open(str(DATA / name), MASTER_KEY, "bench")
