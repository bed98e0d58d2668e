"""`GET /forecasts/v1/risk`: how likely values are to fall below a threshold, or to exceed it."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from fleetcast.http.answers import encode
from fleetcast.http.resources.params import Query
from fleetcast.http.resources.predictions import ForecastRequests, invalid

if TYPE_CHECKING:
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
        query = Query(request.query_string)
        predictions, asked = self._requests.read(query)
        threshold = _threshold(query)
        document = predictions.answer(state.plane, state.identity.tenant.account_id, *asked)
        response.data = encode(predictions.with_risk(document, threshold))

    on_head = on_get


def _threshold(query: Query) -> float:
    """Returns the one threshold of a request, in dB or bytes. Raises `Refused`."""
    try:
        (text,) = query.given(_THRESHOLD)
        threshold = float(text)
    except ValueError:
        raise invalid(_THRESHOLD) from None
    if not isfinite(threshold):
        raise invalid(_THRESHOLD)
    return threshold
