"""How much may be under way at once: the bound that answers overload (L19, F10)."""

from __future__ import annotations

import threading

from fleetcast.errors import refused


class Intake:
    """Counts something against a bound. Safe to share between threads.

    What is turned away is told to come back, before it has cost anything.
    """

    def __init__(self) -> None:
        self._used = 0
        self._lock = threading.Lock()

    def enter(self, amount: int, most: int) -> None:
        """Takes a share of `most`; a single one above the bound passes alone.

        Raises `Refused` (`ingest_buffer_full`).
        """
        with self._lock:
            if self._used and self._used + amount > most:
                raise refused("ingest_buffer_full")
            self._used += amount

    def leave(self, amount: int) -> None:
        """Gives the share back."""
        with self._lock:
            self._used -= amount
