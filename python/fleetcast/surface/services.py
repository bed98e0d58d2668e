"""The parts that both surfaces need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetcast.metrics import Counters

if TYPE_CHECKING:
    from fleetcast.engine import Engine

Probe = Callable[[], None]
"""Asks a dependency for a sign of life. Any exception means that the dependency has failed."""


@dataclass(frozen=True, kw_only=True)
class SurfaceServices:
    """Stores and counters of one process, opened after its fork."""

    engine: Engine
    counters: Counters = field(default_factory=Counters.alone)
