"""Checks behind the health endpoints and `/readyz`; one that raises has failed.

They cover what all tenants share: a health answer says nothing about a single tenant.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleetcast.accounts import ControlStore
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.surface.services import Probe

_PROBE_BYTES = 65_536  # LMDB needs some pages to commit anything


def http_probes(
    directory: DataDirectory, store: ControlStore, predictions: PredictionStore
) -> Mapping[str, Mapping[str, Probe]]:
    """Checks by subsystem, then by dependency."""

    def reads() -> None:
        with os.scandir(directory.planes) as entries:  # one of them: there may be thousands
            next(entries, None)

    return {
        "telemetry": telemetry_probes(directory, store),
        "topology": {"timeseries_store": reads},
        "predictions": {"prediction_store": predictions.ping},
    }


def readiness_probes(
    directory: DataDirectory,
    store: ControlStore,
    predictions: PredictionStore,
    families: Callable[[], Sequence[str]],
) -> Mapping[str, Probe]:
    """Checks that must pass for the service to be ready, by dependency."""

    def forecasts() -> None:
        if families():
            predictions.ping()

    return {**telemetry_probes(directory, store), "prediction_store": forecasts}


def telemetry_probes(directory: DataDirectory, store: ControlStore) -> Mapping[str, Probe]:
    """Checks that must pass for writes to be accepted, by dependency."""

    def writes() -> None:
        """Fails on a full disk, which stops writes but not reads."""
        with tempfile.TemporaryFile(dir=directory.planes) as file:
            os.posix_fallocate(file.fileno(), 0, _PROBE_BYTES)

    def accounts() -> None:
        with store.read() as tables:
            tables.tenant("probe")

    return {"timeseries_store": writes, "auth_store": accounts}
