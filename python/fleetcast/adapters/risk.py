"""`GET /forecasts/v1/risk`: how likely values are to fall below a threshold, or to exceed it."""

from __future__ import annotations

import json
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING

from fleetcast.errors import refused
from fleetcast.http.answers import encode
from fleetcast.http.resources.predictions import ForecastRequests

if TYPE_CHECKING:
    from collections.abc import Sequence

    import falcon

    from fleetcast.http.request_state import RequestState
    from fleetcast.http.services import HttpServices

_THRESHOLD = "threshold"


class RiskResource:
    """Forecasts as `GET /predictions` has them, each with its probabilities."""

    def __init__(self, services: HttpServices) -> None:
        self._requests = ForecastRequests(services, _THRESHOLD)

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`, `PredictionStoreUnavailable`."""
        state: RequestState = request.context.state
        predictions, asked, thresholds = self._requests.read(request.query_string)
        threshold = _threshold(thresholds)
        body = predictions.answer(state.plane, state.identity.tenant.account_id, asked)
        response.data = encode(predictions.with_risk(json.loads(body), threshold))

    on_head = on_get


def _threshold(given: Sequence[bytes]) -> float:
    """Returns the one threshold of a request, in dB or bytes. Raises `Refused`."""
    with suppress(ValueError):
        (text,) = given
        if isfinite(threshold := float(text)):
            return threshold
    raise refused("invalid_query_parameter", parameter=_THRESHOLD)
