"""Forecasts of an entity at one horizon, next to the values measured at that time."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any, TypeVar

from fleetcast.console.answers import ConsoleRefused
from fleetcast.console.tenant_planes import read_plane
from fleetcast.errors import OperatorError
from fleetcast.forecast.families import FAMILIES, MINUTE_NS
from fleetcast.forecast.serving.store import PredictionStoreUnavailable
from fleetcast.surface.answers import Answer, document

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleetcast.console.query import ConsoleQuery
    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import Plane
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.serving.hindsight import Hindsight

T = TypeVar("T")

_SPAN_MINUTES = {"snr": 180, "demand": 3 * 1_440}
_NS_PER_SECOND = 1_000_000_000
_BYTES_MAX = 1 << 20

logger = logging.getLogger(__name__)


def forecasts(services: ConsoleServices, tenant: str, query: ConsoleQuery) -> Answer:
    """Returns the forecasts that the release in force would have given. Raises `ConsoleRefused`."""
    family = FAMILIES[query.choice("family", FAMILIES, "snr")]
    horizons = [str(minutes) for minutes in family.horizons_minutes]
    horizon = int(query.choice("horizon", horizons, horizons[1]))
    entity_id = query.needed("entity_id")
    span_minutes = _SPAN_MINUTES[family.name]
    band = looking_back(
        services,
        lambda look_back: read_plane(
            services,
            tenant,
            lambda plane: look_back.band(plane, family, entity_id, horizon, span_minutes),
        ),
    )
    return document(
        {
            "family": family.name,
            "measurement": family.measurement,
            "target": family.target,
            "step_seconds": family.step_minutes * 60,
            "horizons_minutes": family.horizons_minutes,
            "horizon_minutes": horizon,
            "model_version": band.model_version,
            "quantile_names": family.quantile_names,
            "times": [time_ns // _NS_PER_SECOND for time_ns in band.times_ns],
            "quantiles": band.quantiles,
            "observed": band.observed,
            "issued": band.times_ns[-1] // _NS_PER_SECOND - horizon * 60,
            "fan": band.fan,
            "error": band.error,
        }
    )


def looking_back(services: ConsoleServices, look: Callable[[Hindsight], T | None]) -> T:
    """Returns what `look` finds. Raises `ConsoleRefused` if nothing can be forecast here."""
    if services.hindsight is None:
        message = "Forecasts are not installed here: pip install 'fleetcast[forecast]'."
        raise ConsoleRefused(404, "predictions_not_enabled", message)
    look_back = services.hindsight()
    try:
        found = look(look_back)
    except (OperatorError, OSError, PredictionStoreUnavailable) as error:
        logger.exception("the console cannot forecast")
        message = "The release in force cannot be used now; the log says why."
        raise ConsoleRefused(503, "prediction_store_unavailable", message) from error
    if found is None:
        message = "No model is released: `fleetcast forecast release promote` puts one in place."
        raise ConsoleRefused(404, "predictions_not_enabled", message)
    return found


def newest_points(
    plane: Plane, family: Family, entities_max: int, *more_columns: Sequence[str]
) -> tuple[list[list[Any]], int]:
    """Returns points of the entities that wrote last within the window of a model, and their count.

    A point is as `Plane.latest_page` has it, with the number that is forecast in the first column.
    """
    body = plane.latest_page(
        columns=[[family.target], *more_columns],
        measurement=family.measurement,
        after_ns=time.time_ns() - family.window_minutes * MINUTE_NS,
        sort="time",
        descending=True,
        entities_max=entities_max,
        bytes_max=_BYTES_MAX,
    )
    page = json.loads(body)
    return page["points"], page["total"]
