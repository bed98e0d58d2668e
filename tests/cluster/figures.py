"""Figures of rounds with faults, summed by fault."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import astuple, dataclass

_TITLES = ("fault", "rounds", "acknowledged", "refused", "of these stored", "reads refused", "gap")


@dataclass
class Figures:
    """Counts of batches and reads, and the longest time without an acknowledgement."""

    rounds: int = 0
    acknowledged: int = 0
    refused: int = 0
    refused_stored: int = 0
    refused_reads: int = 0
    gap_seconds: float = 0.0


_FOUND: defaultdict[str, Figures] = defaultdict(Figures)


def note(fault: str, found: Figures) -> None:
    """Adds the figures of a round, in which nothing was lost, stored twice or read too early."""
    sums = _FOUND[fault]
    gap = max(sums.gap_seconds, found.gap_seconds)
    counts = (a + b for a, b in zip(astuple(sums)[:-1], astuple(found)[:-1], strict=True))
    _FOUND[fault] = Figures(*counts, gap)


def table() -> str:
    """Markdown with a line for each fault of this process so far."""
    lines = [f"| {' | '.join(_TITLES)} |", f"|{'---|' * len(_TITLES)}"]
    for fault, sums in _FOUND.items():
        *counts, gap = astuple(sums)
        lines.append(f"| {fault} | {' | '.join(map(str, counts))} | {gap:.2f} s |")
    return "\n".join(lines)
