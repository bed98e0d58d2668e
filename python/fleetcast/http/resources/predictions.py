"""`GET /predictions`, and the parameters that requests for forecasts have in common.

The engine reads parameters, finds forecasts that were computed earlier, and writes answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import falcon

    from fleetcast.engine import ForecastQuestion
    from fleetcast.forecast.serving.predictions import Predictions
    from fleetcast.http.request_state import RequestState
    from fleetcast.http.services import HttpServices


class PredictionsResource:
    """Forecasts of named links or pools."""

    def __init__(self, services: HttpServices) -> None:
        self._requests = ForecastRequests(services)

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`, `PredictionStoreUnavailable`."""
        state: RequestState = request.context.state
        predictions, asked, _ = self._requests.read(request.query_string)
        response.data = predictions.answer(state.plane, state.identity.tenant.account_id, asked)

    on_head = on_get


class ForecastRequests:
    """Reads requests for forecasts. `other` is one more parameter of the path."""

    def __init__(self, services: HttpServices, other: str | None = None) -> None:
        self._service = services.service
        self._predictions = services.predictions
        self._other = other

    def read(self, query: str) -> tuple[Predictions, ForecastQuestion, list[bytes]]:
        """Returns what answers the request, what it asks for, and the values of `other`.

        Raises `Refused`.
        """
        asked, others = self._service.forecast_question(query, other=self._other)
        assert self._predictions is not None  # noqa: S101 - a family is enabled, so one exists
        return self._predictions(), asked, others
