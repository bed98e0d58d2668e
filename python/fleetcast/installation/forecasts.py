"""Forecasts of an installation: the models it begins with, and those of a deleted tenant."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fleetcast.config.sections import FAMILIES
from fleetcast.extras import is_installed
from fleetcast.forecast.serving.embedded import EmbeddedPredictions
from fleetcast.forecast.serving.store import PredictionStoreUnavailable

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)


def forget_predictions(directory: Path, account_id: str) -> None:
    """Deletes the forecasts of a deleted account, which nobody can read any more."""
    store = EmbeddedPredictions(directory)
    try:
        store.forget(account_id)
    except PredictionStoreUnavailable as error:
        logger.warning("forecasts of %s stay on disk, sealed: %s", account_id, error)
    finally:
        store.close()


def provide_models(directory: Path) -> None:
    """Makes the prediction store, and releases this version's models where none ever was.

    There are none to release without the extra `forecast`. Raises `OperatorError`, `OSError`,
    `PredictionStoreUnavailable`.
    """
    store = EmbeddedPredictions(directory)
    store.ensure()
    try:
        missing = [family for family in FAMILIES if store.lacks_release(family)]
        if missing and is_installed("forecast"):
            from fleetcast.forecast.serving.releases import Releases  # noqa: PLC0415 - slow to load

            for family in missing:
                Releases(store).promote(family)
    finally:
        store.close()
