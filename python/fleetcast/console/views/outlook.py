"""Outlook: links that may lose their signal within the hour, and pools that may reach capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetcast.console.tenant_planes import read_plane
from fleetcast.console.views.forecasts import looking_back, newest_points
from fleetcast.forecast.families import DEMAND, SNR
from fleetcast.surface.answers import Answer, document

if TYPE_CHECKING:
    from fleetcast.console.query import ConsoleQuery
    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import Plane
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.serving.hindsight import EntityOutlook

_LINKS_MAX = 100
_POOLS_MAX = 20
_THRESHOLD_DB = 6.0
_CAPACITIES = ["capacity_bytes", "capacity"]


class _Newest(NamedTuple):
    entity_id: str
    value: float | None
    capacity: float | None


def outlook(services: ConsoleServices, tenant: str, query: ConsoleQuery) -> Answer:
    """Returns links by their probability to fall below `threshold` in dB, and pools by their load.

    The links and pools that wrote last are looked at, 100 and 20 at most. Raises `ConsoleRefused`,
    `Refused`, `ControlStoreUnavailable`.
    """
    threshold = query.number("threshold", _THRESHOLD_DB)

    def read(plane: Plane) -> tuple[dict[str, object], dict[str, object]]:
        links, links_total = _newest(plane, SNR, _LINKS_MAX)
        pools, pools_total = _newest(plane, DEMAND, _POOLS_MAX)
        found = looking_back(services, lambda of: of.outlook(plane, SNR, _ids(links)))
        loads = looking_back(services, lambda of: of.outlook(plane, DEMAND, _ids(pools)))
        pairs = zip(links, found, strict=True)
        rows = [_link(link, forecast, threshold) for link, forecast in pairs]
        full = [_pool(pool, forecast) for pool, forecast in zip(pools, loads, strict=True)]
        return {"total": links_total, "rows": rows}, {"total": pools_total, "rows": full}

    links, pools = read_plane(services, tenant, read)
    return document({"threshold": threshold, "links": links, "pools": pools})


def _newest(plane: Plane, family: Family, entities_max: int) -> tuple[list[_Newest], int]:
    points, total = newest_points(plane, family, entities_max, _CAPACITIES)
    return [_Newest(point[1], point[3], point[4]) for point in points], total


def _ids(newest: list[_Newest]) -> list[str]:
    return [each.entity_id for each in newest]


def _link(link: _Newest, forecast: EntityOutlook, threshold: float) -> dict[str, object]:
    rows = forecast.quantiles
    return {
        "entity_id": link.entity_id,
        "now": link.value,
        "below": forecast.probability_below(threshold),
        "median": rows[-1][1] if rows else None,
        "low": min((row[0] for row in rows), default=None),
    }


def _pool(pool: _Newest, forecast: EntityOutlook) -> dict[str, object]:
    return {
        "entity_id": pool.entity_id,
        "now": pool.value,
        "capacity": pool.capacity,
        "high": max((row[-1] for row in forecast.quantiles), default=None),
    }
