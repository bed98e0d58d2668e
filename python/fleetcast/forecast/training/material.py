"""Samples to learn from and to judge by: real sets, their variants, simulated sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fleetcast.forecast.families import DEMAND, MINUTE_NS, SNR
from fleetcast.forecast.training.augment import variants
from fleetcast.forecast.training.samples import Samples, at_steps, drawn, sampled
from fleetcast.forecast.training.sets import Span, sets_of
from fleetcast.forecast.training.simulated import (
    bursty_pools,
    fixed_links,
    moving_links,
    smooth_pools,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.rows import Rows
    from fleetcast.forecast.training.sets import DataSet

_MANY = 500
"""A set with more entities than this gives fewer samples of each entity."""
# Name, generator, entities, the first and last minute in which issue times are drawn, and the share
# in learning. Satellites count twice, because no real set that may be learned from has any.
_SIMULATED = {
    SNR: (
        ("satellites on circular orbits, simulated", moving_links, 1500, 0, 2 * 1440 + 720, 2.0),
        ("links that stay, simulated", fixed_links, 300, 30, 9 * 1440, 1.0),
    ),
    DEMAND: (
        ("smooth pools, simulated", smooth_pools, 300, 7 * 1440, 28 * 1440, 1.0),
        ("bursty pools, simulated", bursty_pools, 300, 7 * 1440, 28 * 1440, 1.0),
    ),
}
_SIMULATED_START_NS = 1_700_006_400_000_000_000
_HELD_SHARE = 0.5
"""Share of the calibration: bands must hold on real sets above all."""
_SIMULATED_HELD = 5  # one in so many is kept for the calibration


@dataclass(frozen=True)
class Part:
    """Samples of one kind; `share` is their weight in learning, whatever their number."""

    name: str
    samples: Samples
    share: float


@dataclass(frozen=True)
class Material:
    """All samples of a family."""

    learn: list[Part]
    calibrate: list[Part]
    test: list[Part]

    def with_judged_days(self) -> Material:
        """Learns from the judged days too, as far as a set is learned from.

        Calibration stays on the days that are left out, and on links that are left out.
        """
        judged = {part.name: part.samples for part in self.test}
        learn = [
            replace(part, samples=Samples.joined([part.samples, judged[part.name]]))
            if part.name in judged
            else part
            for part in self.learn
        ]
        return replace(self, learn=learn)


def collected(family: Family, directory: Path, seed: int, say: Callable[[str], None]) -> Material:
    """Samples of the sets in `directory`, of their variants and of simulated sets.

    Raises `OperatorError`.
    """
    material = Material([], [], [])
    for index, one in enumerate(sets_of(family)):
        entities = one.rows(directory)
        say(f"features of {one.name}: {len(entities)} entities")
        _add(material, one, entities, seed + 10 * index)
    say("features of what is simulated")
    _simulate(material, family, seed)
    return material


def _add(material: Material, one: DataSet, entities: dict[str, Rows], seed: int) -> None:
    family, many = one.family, len(entities) > _MANY
    apart_ns = (60 if many else 5 if family is SNR else 45) * MINUTE_NS
    test = sampled(family, entities, at_steps(one.test, apart_ns))
    material.test.append(Part(one.name, test, 1.0))
    if not one.learned:
        return
    held = sampled(family, entities, at_steps(one.calibrate, apart_ns))
    material.calibrate.append(Part(one.name, held, 1.0))
    times = drawn(one.train, family.step_ns, 100, seed) if many else at_steps(one.train, apart_ns)
    material.learn.append(Part(one.name, sampled(family, entities, times), 1.0))
    varied = variants(family, list(entities.values()), 300 if many else 100, one.train.end_ns, seed)
    times = drawn(one.train, family.step_ns, 100 if many else 300, seed + 1)
    material.learn.append(Part(f"{one.name}, varied", sampled(family, varied, times), 1.0))


def _simulate(material: Material, family: Family, seed: int) -> None:
    for name, make, count, first_minutes, minutes, share in _SIMULATED[family]:
        span = Span(_SIMULATED_START_NS, _SIMULATED_START_NS + minutes * MINUTE_NS)
        issued = Span(span.start_ns + first_minutes * MINUTE_NS, span.end_ns)
        entities = make(span, count, seed)
        samples = sampled(family, entities, drawn(issued, family.step_ns, 250, seed))
        held = samples.entity % _SIMULATED_HELD == 0
        material.learn.append(Part(name, samples.where(~held), share))
        material.calibrate.append(Part(name, samples.where(held), _HELD_SHARE))
