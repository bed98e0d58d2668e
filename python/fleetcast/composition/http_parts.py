"""Parts of an HTTP listener, and everything that a worker makes them from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from fleetcast.composition.shared_settings import SharedSettings
    from fleetcast.engine import Service
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.stores import Stores
    from fleetcast.metrics import Counters


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Everything from which a worker of an HTTP listener makes its application after the fork."""

    directory: DataDirectory
    stores: Stores
    settings: SharedSettings
    counters: Counters
    run: str
    """Name of this run of the service."""


class HttpParts(NamedTuple):
    """Parts of a listener that are made again when settings change."""

    service: Service
    """Decides about requests."""
    application: WSGIApplication
