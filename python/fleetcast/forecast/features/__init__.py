"""Features of models from rows before an instant, and the truth that came later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import SNR
from fleetcast.forecast.features import demand, snr
from fleetcast.forecast.features.view import (
    INSUFFICIENT_TELEMETRY,
    NO_TELEMETRY,
    Feature,
    Features,
    FeatureView,
    without_error,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.features.path import Track
    from fleetcast.forecast.rows import Floats, Instants, Rows

__all__ = [
    "INSUFFICIENT_TELEMETRY",
    "NO_TELEMETRY",
    "Feature",
    "FeatureView",
    "Features",
    "features",
    "observed",
    "observed_at",
    "view",
    "without_error",
]


def view(family: Family) -> FeatureView:
    """The input features of a family's models."""
    return snr.VIEW if family is SNR else demand.VIEW


def features(
    family: Family,
    entities: Iterable[Rows],
    issued_ns: Instants,
    tracks: Sequence[Track | None] | None = None,
) -> Features:
    """Features of entities at issue times, which are whole steps. Only rows before each count.

    `tracks` know the future positions of the satellites at the other ends of links. An entity's
    features at an issue time do not depend on other entities or other issue times. The rows of
    pools are read and released one pool at a time.
    """
    # Numbers too large to compute with come out as infinite or NaN, and get no forecast.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if family is SNR:
            links = list(entities)
            return snr.features(links, issued_ns, tracks or [None] * len(links))
        return demand.features(entities, issued_ns)


def observed(family: Family, rows: Rows, issued_ns: Instants) -> Floats:
    """The truth of each horizon [issue times, horizons]; NaN if `rows` do not contain it."""
    if family is SNR:
        return snr.observed(rows, issued_ns)
    return demand.observed(rows, issued_ns)


def observed_at(
    family: Family, entities: Sequence[Rows], issued_ns: int, horizon_minutes: int
) -> Floats:
    """The truth at one horizon of forecasts issued at one instant [entities], as `observed`."""
    if family is SNR:
        return snr.observed_at(entities, issued_ns, horizon_minutes)
    index = family.horizons_minutes.index(horizon_minutes)
    issued = np.array([issued_ns])
    return np.array([demand.observed(rows, issued)[0, index] for rows in entities])
