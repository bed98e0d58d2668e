"""Counts of a bridge's work, as its log shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class BridgeTally:
    """Counts since the start. One thread alone changes each count."""

    messages: int = 0
    repeated: int = 0
    poison: int = 0
    dropped: int = 0
    stored: int = 0
    refused: int = 0
    looked_up: int = 0
    retries: int = 0
