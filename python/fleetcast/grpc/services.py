"""The parts that the gRPC surface stands on: given to `serve`, or doubles in tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.surface.services import SurfaceServices

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable, Mapping

    from fleetcast.accounts import Identity
    from fleetcast.config import Settings
    from fleetcast.engine import KeyVerdicts, Plane
    from fleetcast.surface.services import Probe


class Admitted(NamedTuple):
    """Someone who may write, and the plane that is theirs."""

    identity: Identity
    plane: weakref.ref[Plane]


@dataclass(frozen=True, kw_only=True)
class GrpcServices(SurfaceServices):
    """The parts of one gRPC process."""

    settings: Callable[[], Settings]
    """Gives those in force."""
    verdicts: KeyVerdicts[Admitted] | None = None
    """`None` where each call is decided on anew."""
    probes: Mapping[str, Probe] = field(default_factory=dict)
    """By dependency: all that writes need."""
