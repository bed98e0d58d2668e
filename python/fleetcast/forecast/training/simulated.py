"""Invented links and pools, for cases that the real sets lack; all is drawn from one seed.

The cases are satellites that move, and smooth demand with the rhythm of days and weeks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.geometry import CircularOrbit, Site, look
from fleetcast.forecast.rows import Rows

if TYPE_CHECKING:
    from fleetcast.forecast.rows import Floats
    from fleetcast.forecast.training.sets import Span

_CADENCE_NS = 60_000_000_000
_INTERVAL_NS = 900_000_000_000
_SHELLS_KM = (1_400.0, 8_062.0, 8_062.0, 19_130.0, 20_182.0, 20_182.0, 23_222.0, 35_786.0)


def moving_links(span: Span, count: int, seed: int) -> dict[str, Rows]:
    """Links to satellites on circular orbits while the satellites are above the horizon.

    The level follows free-space loss, the antenna's gain over elevation, slow wander, the ground's
    echo that fades with elevation, and the receiver's resolution. Some links report their geometry
    without a range, and some links report no geometry.
    """
    return {f"link{k}": _link(np.random.default_rng([seed, k]), span) for k in range(count)}


def _link(dice: np.random.Generator, span: Span) -> Rows:
    times = np.arange(span.start_ns, span.end_ns, _CADENCE_NS, dtype=np.int64)
    site = Site(
        float(np.degrees(np.arcsin(dice.uniform(-0.9, 0.9)))), float(dice.uniform(-180, 180))
    )
    orbit = CircularOrbit(
        altitude_km=float(dice.choice(_SHELLS_KM) * dice.uniform(0.95, 1.05)),
        inclination_deg=float(dice.choice([dice.uniform(0, 15), dice.uniform(45, 98)])),
        node_deg=float(dice.uniform(0, 360)),
        phase_deg=float(dice.uniform(0, 360)),
        epoch_ns=span.start_ns,
    )
    seen = look(site, orbit.positions(times))
    lowest = dice.uniform(2, 15)
    highest = dice.choice([90.0, 90.0, lowest + dice.uniform(10, 40)])
    visible = (seen.elevation_deg > lowest) & (seen.elevation_deg < highest)
    times = times[visible]
    elevation, azimuth = seen.elevation_deg[visible], seen.azimuth_deg[visible]
    range_km = seen.range_km[visible]
    sine = np.sin(np.radians(elevation))
    gain = dice.uniform(0, 16) * (1 - np.exp(-elevation / dice.uniform(8, 40)))
    beam = dice.uniform(-5, 2) * sine**2  # the satellite's antenna, in dB at the middle of its beam
    # The ground's echo, weaker the higher: 20 log10 |1 + echo|, its phase by the extra path.
    echo = dice.uniform(0, 0.7) * np.exp(-elevation / dice.uniform(5, 40))
    phase = 4 * np.pi * _spread(dice, 2, 60) * sine + dice.uniform(0, 2 * np.pi)
    ripple = 20 * np.log10(np.abs(1 + echo * np.exp(1j * phase)))
    blocked = _obstacles(dice, azimuth, elevation)
    wander = wandering(dice, len(times), dice.uniform(0.05, 0.6), dice.uniform(5, 120))
    rough = 1 + dice.uniform(0, 4) * np.exp(-elevation / dice.uniform(5, 20))
    noise = dice.normal(size=len(times)) * dice.uniform(0.02, 0.4) * rough
    # Echoes from near the antenna change within minutes.
    noise += wandering(dice, len(times), dice.uniform(0, 0.4), dice.uniform(1, 5)) * rough
    level = (
        dice.uniform(5, 50)
        - 20 * np.log10(range_km / max(range_km.min(initial=np.inf), 1.0))
        + gain
        + beam
        + ripple
        + blocked
        + wander
        + noise
    )
    resolution = dice.choice([0.01, 0.1, 0.25, 0.5, 1.0])
    fields: dict[str, Floats] = {"snr_db": np.round(level / resolution) * resolution}
    reported = dice.uniform()
    if reported < 0.85:
        fields |= {"elevation_deg": elevation, "azimuth_deg": azimuth}
    if reported < 0.4:
        fields |= {"slant_range_km": range_km}
    return Rows(times, fields)


def _obstacles(dice: np.random.Generator, azimuth: Floats, elevation: Floats) -> Floats:
    """Loss behind roofs and trees, in some directions at low elevations."""
    loss = np.zeros(len(azimuth))
    for _ in range(int(dice.integers(0, 4))):
        away = (azimuth - dice.uniform(0, 360) + 180) % 360 - 180
        hidden = (np.abs(away) < dice.uniform(5, 30)) & (elevation < dice.uniform(5, 30))
        loss[hidden] -= dice.uniform(1, 12)
    return loss


def wandering(dice: np.random.Generator, count: int, size: float, steps: float) -> Floats:
    """A first-order random walk that returns: deviation `size`, memory of `steps`."""
    keep = np.exp(-1 / steps)
    kicks = dice.normal(size=count) * size * np.sqrt(1 - keep**2)
    level = np.empty(count)
    now = dice.normal() * size
    for index, kick in enumerate(kicks):
        now = now * keep + kick
        level[index] = now
    return level


def fixed_links(span: Span, count: int, seed: int) -> dict[str, Rows]:
    """Links between fixed sites, in conditions from quiet to wild.

    The level wanders at several paces, follows the sun, flickers, and falls in fades that come and
    go; the receiver resolves it finely or coarsely.
    """
    return {f"fixed{k}": _fixed(np.random.default_rng([seed, k]), span) for k in range(count)}


def _fixed(dice: np.random.Generator, span: Span) -> Rows:
    times = np.arange(span.start_ns, span.end_ns, _CADENCE_NS, dtype=np.int64)
    count = len(times)
    level = np.zeros(count)
    for _ in range(int(dice.integers(1, 4))):
        size, memory = _spread(dice, 0.02, 1.5), _spread(dice, 3, 2_000)
        level += wandering(dice, count, size, memory)
    hours = np.arange(count) / 60 + dice.uniform(0, 24)
    level += dice.choice([0.0, _spread(dice, 0.05, 1.5)]) * np.sin(2 * np.pi * hours / 24)
    # Noise whose size itself wanders, as in scintillation.
    flicker = np.exp(wandering(dice, count, dice.uniform(0, 1), _spread(dice, 30, 1_000)))
    level += dice.normal(size=count) * _spread(dice, 0.01, 0.5) * flicker
    for _ in range(int(dice.poisson(dice.choice([0, 2, 10])))):
        level -= _fade(dice, count)
    resolution = dice.choice([0.01, 0.05, 0.1, 0.3, 0.5, 1.0])
    values = np.round((level + dice.uniform(-60, 40)) / resolution) * resolution
    values[dice.uniform(size=count) < dice.choice([0.0, 0.02, 0.1])] = np.nan
    return Rows(times, {"snr_db": values})


def _fade(dice: np.random.Generator, count: int) -> Floats:
    """Rain: the level falls within minutes, stays low, and lifts, ragged all the time."""
    depth, fall, stay, lift = (
        _spread(dice, 0.5, 20),
        _spread(dice, 3, 60),
        _spread(dice, 3, 200),
        _spread(dice, 5, 120),
    )
    since = np.arange(count) - dice.uniform(0, count)
    shape = np.minimum(
        np.clip(since / fall, 0, 1), np.clip((fall + stay + lift - since) / lift, 0, 1)
    )
    ragged: Floats = depth * shape * np.exp(wandering(dice, count, 0.3, dice.uniform(3, 30)))
    return ragged


def _spread(dice: np.random.Generator, low: float, high: float) -> float:
    """A number drawn evenly on a logarithmic scale.

    Example: between 1 and 100, half of the numbers are below 10.
    """
    return float(np.exp(dice.uniform(np.log(low), np.log(high))))


def smooth_pools(span: Span, count: int, seed: int) -> dict[str, Rows]:
    """Pools with daily and weekly rhythms, from nearly clean to noisy; some hold counts."""
    return {f"pool{k}": _pool(np.random.default_rng([seed, k]), span) for k in range(count)}


def _pool(dice: np.random.Generator, span: Span) -> Rows:
    times = np.arange(span.start_ns, span.end_ns, _INTERVAL_NS, dtype=np.int64)
    hours = (times - span.start_ns) / 3.6e12 + dice.uniform(0, 24)
    day = np.zeros(len(times))
    for harmonic in range(1, 5):
        day += (
            dice.normal()
            / harmonic**1.3
            * np.cos(2 * np.pi * harmonic * hours / 24 + dice.uniform(0, 2 * np.pi))
        )
    weekend = ((hours / 24).astype(int) % 7 >= 5) * dice.choice([0.0, dice.uniform(-0.8, 0.3)])
    drift = wandering(dice, len(times), dice.uniform(0, 0.25), dice.uniform(96, 1500))
    wander = wandering(dice, len(times), dice.uniform(0.01, 0.3), dice.uniform(2, 60))
    noise = dice.normal(size=len(times)) * np.exp(dice.uniform(np.log(0.005), np.log(0.3)))
    logs = dice.uniform(0.05, 0.7) * day + weekend + drift + wander + noise
    bursts = dice.uniform(size=len(times)) < dice.choice([0.0, 0.0, 0.001, 0.01])
    logs += bursts * dice.exponential(1.0, len(times))
    rate = np.exp(logs)
    if dice.uniform() < 0.3:
        return Rows(times, {"offered_bytes": dice.poisson(rate * 10 ** dice.uniform(0, 2.5)) * 1.0})
    return Rows(times, {"offered_bytes": rate * 10 ** dice.uniform(3, 11)})


def bursty_pools(span: Span, count: int, seed: int) -> dict[str, Rows]:
    """Pools of a few servers: idle, then busy, with jobs by the clock and sudden bursts."""
    return {f"bursty{k}": _bursty(np.random.default_rng([seed, k]), span) for k in range(count)}


def _bursty(dice: np.random.Generator, span: Span) -> Rows:
    times = np.arange(span.start_ns, span.end_ns, _INTERVAL_NS, dtype=np.int64)
    count = len(times)
    noise = np.exp(dice.normal(size=count) * _spread(dice, 0.02, 0.6))
    level = _spread(dice, 0.001, 1) * noise
    busy = _by_turns(dice, count, _spread(dice, 1, 200), _spread(dice, 1, 400))
    work = np.exp(wandering(dice, count, dice.uniform(0, 1), _spread(dice, 2, 200)))
    level += float(dice.choice([0.0, _spread(dice, 0.3, 3)])) * busy * work * noise
    for _ in range(int(dice.poisson(2))):
        level += _jobs(dice, count)
    bursts = dice.uniform(size=count) < dice.choice([0.0, 0.002, 0.02])
    level += bursts * _spread(dice, 0.3, 10) * (1 + dice.pareto(dice.uniform(1.2, 3), count))
    if dice.uniform() < 0.3:  # moved, or grown, at some time
        level[int(dice.integers(count)) :] *= _spread(dice, 0.2, 5)
    if dice.uniform() < 0.2:
        counts = dice.poisson(level * _spread(dice, 1, 100)).astype(np.float64)
        return Rows(times, {"offered_bytes": counts})
    return Rows(times, {"offered_bytes": level * float(10 ** dice.uniform(3, 11))})


def _by_turns(dice: np.random.Generator, count: int, on: float, off: float) -> Floats:
    """1 for a while and 0 for a while, for `on` and `off` steps on average."""
    lengths = np.stack([dice.geometric(1 / max(mean, 1.0), count) for mean in (off, on)], axis=1)
    turns = np.repeat(np.tile([0.0, 1.0], count), lengths.ravel())
    skipped = int(dice.integers(lengths[0].sum()))
    return turns[skipped : skipped + count]


def _jobs(dice: np.random.Generator, count: int) -> Floats:
    """Work that begins by the clock, from every half hour to every week, in varying amounts."""
    period = int(dice.choice([2, 4, 4, 8, 24, 48, 96, 96, 672]))
    since = np.arange(count) - int(dice.integers(period)) + period
    run = since // period
    runs = int(run.max()) + 1
    size: Floats = np.exp(dice.normal(size=runs) * dice.uniform(0, 1))
    size *= dice.uniform(size=runs) < dice.choice([1.0, 1.0, 0.8])
    running = since % period < dice.integers(1, 9)
    return np.where(running, size[run] * _spread(dice, 0.1, 20), 0.0)
