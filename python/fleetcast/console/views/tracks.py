"""Ways of entities over the last hour, for the map."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from fleetcast.console.tenant_planes import read_plane
from fleetcast.console.views.entities import LATITUDES, LONGITUDES
from fleetcast.surface.answers import Answer, document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.console.query import ConsoleQuery
    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import Plane

_ENTITIES_MAX = 16
_SECONDS = 3_600
_VALUES_MAX = 100_000  # of 16 entities, 240 steps, and ten names of coordinates
_NS_PER_SECOND = 1_000_000_000


def tracks(services: ConsoleServices, tenant: str, query: ConsoleQuery) -> Answer:
    """Returns latitude and longitude of each entity every 15 s, oldest first.

    The JSON array `entities` names at most 16 entities of a `measurement`. Raises `ConsoleRefused`,
    `Refused`, `ControlStoreUnavailable`.
    """
    measurement = query.needed("measurement")
    entity_ids = query.texts("entities")
    if not 0 < len(entity_ids) <= _ENTITIES_MAX:
        query.refuse("entities", f"entities must name 1 to {_ENTITIES_MAX} entities.")
    limits = services.settings().limits
    end_ns = time.time_ns()

    def read(plane: Plane) -> bytes:
        # The last value of a step, because a mean of 179 and -179 degrees is on the other side.
        return plane.series_json(
            entity_ids=entity_ids,
            start_ns=end_ns - _SECONDS * _NS_PER_SECOND,
            end_ns=end_ns,
            measurement=measurement,
            fields=[*LATITUDES, *LONGITUDES],
            interval="15s",
            agg="last",
            point_budget=limits.point_budget,
            answer_values_max=min(limits.answer_values_max, _VALUES_MAX),
            history_horizon_days=limits.history_horizon_days,
            any_measurement=True,
        )

    series = json.loads(read_plane(services, tenant, read))["series"]
    return document({"tracks": [_track(each["channels"]) for each in series]})


def _track(channels: dict[str, list[Any]]) -> list[list[float]]:
    latitudes, longitudes = _first(channels, LATITUDES), _first(channels, LONGITUDES)
    places = zip(latitudes, longitudes, strict=False)
    return [[lat, lon] for lat, lon in places if lat is not None and lon is not None]


def _first(channels: dict[str, list[Any]], names: Sequence[str]) -> list[Any]:
    """Returns the values of the first name that has any."""
    found = (channels.get(name, []) for name in names)
    return next((values for values in found if any(of is not None for of in values)), [])
