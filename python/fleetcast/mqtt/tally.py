"""Counts of what a bridge did, as its log shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class BridgeTally:
    """Counts since the start. Each is changed by one thread alone."""

    messages: int = 0
    repeated: int = 0
    poison: int = 0
    dropped: int = 0
    stored: int = 0
    refused: int = 0
    looked_up: int = 0
    retries: int = 0
