"""Models that an installation begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.config.sections import FAMILIES
from fleetcast.extras import is_installed

if TYPE_CHECKING:
    from fleetcast.forecast.serving.store import PredictionStore


def lacks_models(store: PredictionStore) -> bool:
    """Makes the prediction store. Returns true if a family never had a model, and could have one.

    Without the extra `forecast` there are no models to release. Raises `OSError`,
    `PredictionStoreUnavailable`.
    """
    store.ensure()
    return is_installed("forecast") and any(map(store.lacks_release, FAMILIES))


def provide_models(store: PredictionStore) -> None:
    """Makes the prediction store, and releases this version's models if a family has none.

    Raises `OperatorError`, `OSError`, `PredictionStoreUnavailable`.
    """
    if lacks_models(store):
        from fleetcast.forecast.serving.releases import Releases  # noqa: PLC0415 - slow to load

        for family in filter(store.lacks_release, FAMILIES):
            Releases(store).promote(family)
