"""The parts that the gRPC surface needs; `serve` takes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleetcast.config import Settings
    from fleetcast.engine import Authenticator, Engine
    from fleetcast.metrics import Counters
    from fleetcast.surface.readiness import Probe


@dataclass(frozen=True, kw_only=True)
class GrpcServices:
    """The parts of one gRPC process."""

    engine: Engine
    counters: Counters
    authenticator: Authenticator
    settings: Callable[[], Settings]
    """Returns the settings in force."""
    settings_descriptor: int
    """Memory whose first word is the version of the settings."""
    probes: Mapping[str, Probe] = field(default_factory=dict)
    """By dependency: everything that writes need."""
