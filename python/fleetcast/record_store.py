"""Small records under keys in named spaces, for accounts and forecasts.

A store is `engine.Records`: LMDB in a folder, or PostgreSQL, which many nodes share. All records
are sealed under the master key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetcast.engine import RecordsTransaction

FACTS = "facts"
"""The space of facts about a store itself, which every store has."""

_NUMBER_BYTES = 8


def count_up(view: RecordsTransaction, key: bytes) -> int:
    """Returns a number greater than every earlier number of this key in this store."""
    number = int.from_bytes(view.get(FACTS, key) or b"", "big") + 1
    view.put(FACTS, key, number.to_bytes(_NUMBER_BYTES, "big"))
    return number
