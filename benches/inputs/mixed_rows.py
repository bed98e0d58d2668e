"""Rows of many fields of all types, with gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast._core import Plane

ENTITIES, STEPS = 20, 4_320
STEP_NS = 10 * 1_000_000_000
DOUBLES, SELDOM, TEXTS, BOOLEANS = 40, 10, 5, 5
SELDOM_SHARE = 0.3
MAPPING = {"time": "time", "time_unit": "ns", "measurement": "box", "entity": "entity_id"}


def frames(start_ns: int) -> Iterator[pl.DataFrame]:
    """Half a day, an hour in each frame, in order of time."""
    dice = np.random.default_rng(7)
    count = 360 * ENTITIES
    for first in range(0, STEPS, 360):
        times = start_ns + np.repeat(np.arange(first, first + 360), ENTITIES) * STEP_NS
        ids = [f"box-{at:02}" for at in range(ENTITIES)] * 360
        walks = {f"walk_{at}": dice.normal(0, 1, count).cumsum().round(2) for at in range(DOUBLES)}
        seldom = {
            f"seldom_{at}": pl.Series(
                np.where(dice.random(count) < SELDOM_SHARE, dice.normal(0, 1, count), np.nan)
            ).fill_nan(None)
            for at in range(SELDOM)
        }
        texts = {
            f"text_{at}": [f"state {number}" for number in dice.integers(0, 10 ** (at + 1), count)]
            for at in range(TEXTS)
        }
        booleans = {f"is_{at}": dice.random(count) < at / BOOLEANS for at in range(BOOLEANS)}
        yield pl.DataFrame({"time": times, "entity_id": ids} | walks | seldom | texts | booleans)


def fill(plane: Plane, start_ns: int) -> int:
    """Writes and compacts them all, and gives the number of values."""
    for frame in frames(start_ns):
        plane.write_arrow(frame, mapping=MAPPING)
    plane.compact(whole=True)
    return plane.stats().values
