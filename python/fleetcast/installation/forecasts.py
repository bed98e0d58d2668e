"""Forecasts of an installation: the models it begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.config.sections import FAMILIES
from fleetcast.extras import is_installed

if TYPE_CHECKING:
    from fleetcast.forecast.serving.store import PredictionStore


def provide_models(store: PredictionStore) -> None:
    """Makes the prediction store, and releases this version's models where none ever was.

    There are none to release without the extra `forecast`. Raises `OperatorError`, `OSError`,
    `PredictionStoreUnavailable`.
    """
    store.ensure()
    missing = [family for family in FAMILIES if store.lacks_release(family)]
    if missing and is_installed("forecast"):
        from fleetcast.forecast.serving.releases import Releases  # noqa: PLC0415 - slow to load

        for family in missing:
            Releases(store).promote(family)
