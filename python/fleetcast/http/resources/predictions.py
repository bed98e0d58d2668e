"""`GET /predictions`, and the parameters that requests for forecasts have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetcast.errors import refused
from fleetcast.forecast.families import FAMILIES
from fleetcast.http.answers import encode
from fleetcast.http.resources.params import Query, is_text

if TYPE_CHECKING:
    import falcon

    from fleetcast.forecast.serving.predictions import Predictions
    from fleetcast.http.request_state import RequestState
    from fleetcast.http.services import HttpServices

_PARAMETERS = ("model_family", "link_ids", "horizon_minutes")
_DEFAULT_FAMILY = "snr"


class AskedForecasts(NamedTuple):
    """The forecasts that a request asks for."""

    family: str
    entity_ids: list[str]
    """Without duplicates."""
    horizon_minutes: int | None
    """`None` for every horizon of the family."""


class PredictionsResource:
    """Forecasts of named links or pools."""

    def __init__(self, services: HttpServices) -> None:
        self._requests = ForecastRequests(services)

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`, `PredictionStoreUnavailable`."""
        state: RequestState = request.context.state
        predictions, asked = self._requests.read(Query(request.query_string))
        document = predictions.answer(state.plane, state.identity.tenant.account_id, *asked)
        response.data = encode(document)

    on_head = on_get


class ForecastRequests:
    """Reads requests for forecasts, which may have `more` parameters."""

    def __init__(self, services: HttpServices, *more: str) -> None:
        self._parameters = *_PARAMETERS, *more
        self._families = services.families
        self._link_ids_max = services.settings.limits.link_ids_max
        self._predictions = services.predictions

    def read(self, query: Query) -> tuple[Predictions, AskedForecasts]:
        """Returns what answers the request, and what it asks for. Raises `Refused`."""
        self._check_enabled(query)
        for name in query.names:
            if name not in self._parameters:
                shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                raise refused("unknown_query_parameter", parameter=shown)
        entity_ids = self._entity_ids(query)
        family, horizon = self._values(query)
        assert self._predictions is not None  # noqa: S101 - a family is enabled, so one exists
        return self._predictions(), AskedForecasts(family, entity_ids, horizon)

    def _check_enabled(self, query: Query) -> None:
        """Runs before all other checks: a service that predicts nothing gives no further hints."""
        asked = query.given("model_family") or [_DEFAULT_FAMILY]
        known = len(asked) == 1 and asked[0] in FAMILIES
        if not self._families or (known and asked[0] not in self._families):
            raise refused("predictions_not_enabled")

    def _entity_ids(self, query: Query) -> list[str]:
        given = query.given("link_ids")
        if not any(given):
            raise refused("missing_link_ids")
        if len(given) > self._link_ids_max:  # blank ids and duplicates count
            raise refused("too_many_link_ids", max=self._link_ids_max)
        if not all(map(is_text, given)):  # invalid UTF-8
            raise invalid("link_ids")
        return [each for each in dict.fromkeys(given) if each]

    def _values(self, query: Query) -> tuple[str, int | None]:
        for name in ("model_family", "horizon_minutes"):
            given = query.given(name)
            if len(given) > 1 or not all(map(is_text, given)):  # repeated, or invalid UTF-8
                raise invalid(name)
        family = query.text("model_family") or _DEFAULT_FAMILY
        horizon = query.whole("horizon_minutes")
        query.finish()
        if query.given("model_family") and query.given("model_family")[0] not in FAMILIES:
            raise invalid("model_family")
        if horizon is not None and horizon not in FAMILIES[family].horizons_minutes:
            raise invalid("horizon_minutes")
        return family, horizon


def invalid(name: str) -> Exception:
    """Returns the refusal of a request for its parameter `name`."""
    return refused("invalid_query_parameter", parameter=name)
