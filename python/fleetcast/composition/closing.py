"""Closing of planes that a process no longer needs: idle planes, and planes of deleted tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.composition.background import repeating

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fleetcast.engine import Engine

_ROUND_SECONDS = 0.5  # a deleted tenant's key leaves memory within a second


def closing_unused(engine: Engine) -> AbstractContextManager[None]:
    """Closes unused planes until the end of the block."""
    return repeating("planes", engine.close_unused, _ROUND_SECONDS, "planes were not closed")
