"""Variants of real series, so that a model learns of series in general."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import MINUTE_NS, SNR
from fleetcast.forecast.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.rows import Floats

_DAY_NS = 1440 * MINUTE_NS
_WINDOW_NS = 15 * MINUTE_NS
_FAR = np.iinfo(np.int64).max


def variants(
    family: Family, entities: Sequence[Rows], count: int, end_ns: int, seed: int
) -> dict[str, Rows]:
    """`count` series made of rows before `end_ns`, each with its own random numbers."""
    make = _link if family is SNR else _pool
    past = [rows.before(end_ns) for rows in entities]
    return {f"v{k}": make(np.random.default_rng([seed, k]), past, end_ns) for k in range(count)}


def _link(dice: np.random.Generator, entities: Sequence[Rows], end_ns: int) -> Rows:
    """A link: faster or slower, larger or smaller swings, upside down, coarser, shorter history.

    Half of the links are upside down, so that a model reads the direction of falls from a link's
    own history.
    """
    times, values = entities[int(dice.integers(len(entities)))].field(SNR.target)
    if not len(values):
        return Rows(times, {SNR.target: values})
    pace = dice.uniform(0.5, 1.25)
    times = end_ns - ((end_ns - times) * pace).astype(np.int64)
    usual = np.median(values)
    size = np.exp(dice.uniform(np.log(0.3), np.log(3))) * dice.choice([-1, 1])
    values = usual + (values - usual) * size
    if dice.uniform() < 0.5:
        values = values + dice.normal(size=len(values)) * dice.uniform(0, 0.3)
    resolution = dice.choice([0.0, 0.05, 0.1, 0.25, 0.5, 1.0])
    if resolution:
        values = np.round(values / resolution) * resolution
    if dice.uniform() < 0.3:
        since = end_ns - dice.uniform(0.05, 1.0) * (end_ns - times[0])
        times, values = times[times >= since], values[times >= since]
    return Rows(times, {SNR.target: values})


def _pool(dice: np.random.Generator, entities: Sequence[Rows], end_ns: int) -> Rows:
    """A mix of some pools, shifted against each other, more or less bursty; or counts of it."""
    chosen = dice.choice(
        len(entities), min(len(entities), int(dice.choice([1, 1, 2, 3, 6, 12, 30]))), replace=False
    )
    total: dict[int, float] | None = None
    for index in chosen:
        times, values = entities[index].field("offered_bytes")
        weight = np.exp(dice.normal()) / max(float(values.mean()), 1e-9) if len(values) else 0.0
        times, values = _windows(times, values)
        shift = int(dice.choice([0, 0, 1, 7])) * _DAY_NS if len(chosen) > 1 else 0
        here = dict(zip((times + shift).tolist(), (values * weight).tolist(), strict=True))
        total = here if total is None else {t: v + here[t] for t, v in total.items() if t in here}
    mixed = sorted((t, v) for t, v in (total or {}).items() if t < end_ns)
    times = np.array([t for t, _ in mixed], np.int64)
    values = np.array([v for _, v in mixed])
    if len(values):
        mean = max(float(values.mean()), 1e-9)
        values = (values / mean) ** dice.choice([1.0, dice.uniform(0.6, 1.25)])
        if dice.uniform() < 0.2:
            values = dice.poisson(values * 10 ** dice.uniform(0, 2)).astype(float)
    return Rows(times, {"offered_bytes": values})


def _windows(times: np.ndarray, values: Floats) -> tuple[np.ndarray, Floats]:
    """Bytes per window, from intervals no longer than a window."""
    starts = times - times % _WINDOW_NS
    indexes = (starts - starts.min(initial=_FAR)) // _WINDOW_NS
    total = np.bincount(indexes, values).astype(float)
    total[np.bincount(indexes) == 0] = np.nan
    for day in (96, 2 * 96, 7 * 96):  # an outage is bridged with the days before it
        gone = np.flatnonzero(np.isnan(total))
        gone = gone[gone >= day]
        total[gone] = total[gone - day]
    known = ~np.isnan(total)
    when = starts.min(initial=_FAR) + _WINDOW_NS * np.arange(len(total), dtype=np.int64)
    return when[known], total[known]
