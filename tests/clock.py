"""Time that passes when a test says so."""

from __future__ import annotations


class Clock:
    """Seconds, by default since 1970."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
