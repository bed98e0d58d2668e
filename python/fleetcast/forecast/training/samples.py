"""Features and truth of many entities at many issue times, by the code that serves."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.baselines import baselines
from fleetcast.forecast.features import features, observed, without_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.rows import Floats, Instants, Rows
    from fleetcast.forecast.training.sets import Span


@dataclass(frozen=True)
class Samples:
    """`matrix` is [samples, features], `truth` [samples, horizons].

    `entity` [samples] is the index of the sample's entity. Both baselines' answers are [samples,
    horizons, quantiles].
    """

    matrix: Floats
    truth: Floats
    entity: NDArray[np.int64]
    issued_ns: Instants
    last_value: Floats
    same_time: Floats

    def __len__(self) -> int:
        return len(self.matrix)

    def where(self, chosen: NDArray[np.bool_]) -> Samples:
        """Returns the chosen samples."""
        return Samples(*(getattr(self, one.name)[chosen] for one in dataclass_fields(Samples)))

    @classmethod
    def joined(cls, parts: Sequence[Samples]) -> Samples:
        """The samples of all parts, in their order."""
        return cls(
            *(
                np.concatenate([getattr(part, one.name) for part in parts])
                for one in dataclass_fields(cls)
            )
        )


def at_steps(span: Span, step_ns: int) -> Callable[[int], Instants]:
    """The same issue times for each entity."""
    times = np.arange(span.start_ns, span.end_ns, step_ns, dtype=np.int64)
    return lambda _: times


def drawn(span: Span, step_ns: int, count: int, seed: int) -> Callable[[int], Instants]:
    """Different issue times for each entity: at most `count`, in order of time."""

    def times(entity: int) -> Instants:
        dice = np.random.default_rng([seed, entity])
        steps = (span.end_ns - span.start_ns) // step_ns
        chosen = dice.choice(steps, min(count, steps), replace=False)
        return span.start_ns + step_ns * np.sort(chosen).astype(np.int64)

    return times


def sampled(
    family: Family, entities: Mapping[str, Rows], issue_times: Callable[[int], Instants]
) -> Samples:
    """Samples of all entities whose features are complete and whose truth is partly known."""
    parts = []
    for index, rows in enumerate(entities.values()):
        issued = issue_times(index)
        found = features(family, [rows], issued)
        truth = observed(family, rows, issued)
        use = without_error(found.errors[0]) & ~np.isnan(truth).all(1)
        other = baselines(family, rows, issued)
        parts.append(
            Samples(
                found.matrix[0, use],
                truth[use],
                np.full(use.sum(), index),
                issued[use],
                other.last_value[use],
                other.same_time[use],
            )
        )
    return Samples.joined(parts)
