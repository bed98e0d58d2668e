"""Backtest of the links or pools that wrote last, as `fleetcast forecast backtest` would say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetcast.console.tenant_planes import read_plane
from fleetcast.console.views.forecasts import looking_back, newest_points
from fleetcast.forecast.families import FAMILIES
from fleetcast.surface.answers import Answer, document

if TYPE_CHECKING:
    from fleetcast.console.query import ConsoleQuery
    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import Plane
    from fleetcast.forecast.serving.hindsight import HindsightScores


class _Span(NamedTuple):
    """Bounds of a backtest, which takes some tenths of a second."""

    entities_max: int
    minutes: int
    every: int


_SPANS = {"snr": _Span(16, 1_440, 15), "demand": _Span(8, 4 * 1_440, 60)}


def backtests(services: ConsoleServices, tenant: str, query: ConsoleQuery) -> Answer:
    """Returns scores of the release in force and of the baselines, by horizon.

    The entities that wrote last are judged, 16 links or 8 pools at most, over the last day or the
    last four days. Raises `ConsoleRefused`, `Refused`, `ControlStoreUnavailable`.
    """
    family = FAMILIES[query.choice("family", FAMILIES, "snr")]
    span = _SPANS[family.name]

    def read(plane: Plane) -> tuple[HindsightScores, int, int]:
        points, total = newest_points(plane, family, span.entities_max)
        ids = [point[1] for point in points]
        found = looking_back(
            services, lambda look: look.scores(plane, family, ids, span.minutes, span.every)
        )
        return found, len(ids), total

    found, entities, total = read_plane(services, tenant, read)
    return document(
        {
            "family": family.name,
            "model_version": found.model_version,
            "entities": entities,
            "entities_total": total,
            "origins": found.origins,
            "every_minutes": span.every,
            "scores": found.scores,
        }
    )
