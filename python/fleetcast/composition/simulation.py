"""Simulated topology, loaded by the first request that needs it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from pathlib import Path

    from fleetcast.engine import Plane
    from fleetcast.forecast.simulation import Simulation
    from fleetcast.http.services import Simulate

logger = logging.getLogger(__name__)


def simulated(directory: Path) -> Simulate:
    """Returns a function that answers with a simulated topology, or `None`.

    A tenant that has ever written a simulated measurement has a real fleet, which may be silent.
    Such a tenant gets no simulated topology.
    """
    loaded: Simulation | None = None

    def simulate(
        plane: Plane, as_of_ns: int, measurement: str | None
    ) -> tuple[list[dict[str, object]], dict[str, object]] | None:
        nonlocal loaded
        from fleetcast.forecast import simulation  # noqa: PLC0415 - see above

        if measurement is not None and measurement not in simulation.MEASUREMENTS:
            return None
        if plane.knows_any(simulation.MEASUREMENTS):
            return None
        if loaded is None:
            try:
                loaded = simulation.load(directory)
            except OperatorError as error:
                logger.error("topology is not simulated: %s", error)  # noqa: TRY400 - the message says all
                return None
        return loaded.answer(as_of_ns, measurement)

    return simulate
