"""A pool's intervals as bytes per 15-minute window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import DEMAND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats, Instants, Rows

STEP_NS = DEMAND.step_ns
_LOOK_BACK_NS = DEMAND.history_minutes * 60_000_000_000
_DIVIDES_WITHIN = 0.01
"""A spacing so near to a whole fraction of a window counts as that fraction, as clocks drift."""


@dataclass(frozen=True)
class Spacing:
    """Distance between the starts of a pool's intervals, and one of these starts."""

    gap_ns: int
    anchor_ns: int


@dataclass(frozen=True)
class Windows:
    """Bytes per window from window `first` (counted from the epoch) on: [windows].

    `offered` is NaN if less than two thirds of the intervals are present. It is scaled up if some
    intervals are missing, and `whole` is true if no interval is missing. Example: with 2 of 3
    intervals of 10 bytes each, 20 bytes become 30.
    """

    first: int
    offered: Floats
    whole: NDArray[np.bool_]


@dataclass(frozen=True)
class Intervals:
    """A pool's intervals: the start of each interval, and its bytes.

    Each start occurs once: of replays the last interval counts.
    """

    times_ns: Instants
    offered: Floats

    @classmethod
    def of(cls, rows: Rows) -> Intervals:
        """Reads intervals from rows. Leaves out negative bytes."""
        times, offered = rows.field("offered_bytes")
        good = offered >= 0
        if not good.all():
            times, offered = times[good], offered[good]
        last = np.diff(times) > 0
        if not last.all():
            last = np.append(last, True)
            times, offered = times[last], offered[last]
        return cls(times, offered)

    def windows(self, spacing: Spacing, first: int, count: int) -> Windows:
        """`count` windows from `first` on."""
        start, end = np.searchsorted(self.times_ns, [first * STEP_NS, (first + count) * STEP_NS])
        indexes = self.times_ns[start:end] // STEP_NS - first
        total = np.bincount(indexes, self.offered[start:end], minlength=count)
        there = np.bincount(indexes, minlength=count)
        due = _due(spacing, first, count)
        missing = np.maximum(due - there, 0)
        scale = np.where(missing > 0, due / np.maximum(there, 1), 1.0)
        present = (3 * there >= 2 * due) & (there > 0)
        return Windows(first, np.where(present, total * scale, np.nan), present & (missing == 0))

    def spacings(self, issued_ns: Instants) -> Iterator[tuple[Spacing, NDArray[np.int64]]]:
        """The spacing known at each issue time, from the seven days before it.

        Yields each spacing, and the indexes of its issue times.
        """
        ends = np.searchsorted(self.times_ns, issued_ns)
        starts = np.searchsorted(self.times_ns, issued_ns - _LOOK_BACK_NS)
        gaps = np.diff(self.times_ns)
        found = np.full(len(issued_ns), STEP_NS)
        several = np.flatnonzero(ends - starts > 1)
        found[several] = gaps[starts[several]]
        changed = np.diff(gaps) != 0
        if changed.any():
            changes = np.concatenate([[0, 0], np.cumsum(changed)])  # of gap g from gap 1
            for index in several[changes[ends[several] - 1] != changes[starts[several] + 1]]:
                found[index] = int(np.median(gaps[starts[index] : ends[index] - 1]))
        found = np.minimum(found, STEP_NS)
        for gap in sorted(set(found.tolist())):
            indexes = np.flatnonzero(found == gap)
            if _divides(gap):
                yield Spacing(gap, 0), indexes
                continue
            newest = np.maximum(ends[indexes] - 1, 0)
            anchors = np.where(ends[indexes] > 0, self.times_ns[newest] % gap, 0)
            for anchor in np.unique(anchors).tolist():
                yield Spacing(gap, anchor), indexes[anchors == anchor]


def _divides(gap_ns: int) -> bool:
    ratio = STEP_NS / gap_ns
    return abs(ratio - round(ratio)) <= _DIVIDES_WITHIN * ratio


def _due(spacing: Spacing, first: int, count: int) -> NDArray[np.int64]:
    """Number of intervals that start in each window."""
    if _divides(spacing.gap_ns):
        return np.full(count, round(STEP_NS / spacing.gap_ns))
    edges = (first + np.arange(count + 1)) * STEP_NS - spacing.anchor_ns
    return np.diff(-(-edges // spacing.gap_ns))
