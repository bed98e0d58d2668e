"""`GET /topology` and `GET /topology/series`. The engine encodes both answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from fleetcast.engine import AGGREGATIONS, INTERVALS, parse_time
from fleetcast.http.answers import encode
from fleetcast.http.resources.params import Query, check_characters

if TYPE_CHECKING:
    from collections.abc import Iterable

    import falcon

    from fleetcast.config import Settings
    from fleetcast.engine import Aggregation, Interval, LongAnswer, Plane
    from fleetcast.http.services import Simulate

_NOTHING = b'"entities":[]}'
_FRESHNESS_SECONDS = 300.0
_FRESHNESS_SECONDS_MAX = 604_800.0
_ENTITY_IDS_MAX = 16
_NS_PER_SECOND = 1_000_000_000


class LatestResource:
    """The newest sample of every entity in a window.

    `simulate` gives entities and the `simulation` object of an instant where nothing was observed,
    to a tenant without a fleet; `None` where the operator wants none.
    """

    def __init__(self, simulate: Simulate | None = None) -> None:
        self._simulate = simulate

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        query = Query(request.query_string)
        as_of_ns = query.time("as_of_utc")
        measurement = query.text("measurement")
        freshness = query.number(
            "freshness_seconds",
            default=_FRESHNESS_SECONDS,
            value_min=1.0,
            value_max=_FRESHNESS_SECONDS_MAX,
        )
        query.finish()
        if measurement is not None:
            check_characters("measurement", measurement)
        plane: Plane = request.context.state.plane
        chunks = plane.latest_answer(
            as_of_ns=as_of_ns,
            freshness_ns=round(freshness * _NS_PER_SECOND),
            measurement=measurement,
        )
        if (
            self._simulate is not None
            and isinstance(chunks, list)
            and chunks[0][-len(_NOTHING) :] == _NOTHING
        ):
            document = json.loads(bytes(chunks[0]))
            as_of_ns = parse_time(document["as_of_utc"])
            simulated = self._simulate(plane, as_of_ns, measurement)
            if simulated is not None:
                document["entities"], document["simulation"] = simulated
                chunks = [encode(document)]
        _send(response, chunks)

    on_head = on_get


class SeriesResource:
    """Channels of named entities over a window."""

    def __init__(self, settings: Settings) -> None:
        self._limits = settings.limits

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        query = Query(request.query_string)
        entity_ids = query.texts("entity_id", count_max=_ENTITY_IDS_MAX)
        start_ns = query.time("start", required=True)
        end_ns = query.time("end")
        measurement = query.text("measurement")
        fields = query.text("fields")
        interval = cast("Interval | None", query.choice("interval", INTERVALS))
        agg = cast("Aggregation | None", query.choice("agg", AGGREGATIONS))
        query.finish()
        assert start_ns is not None  # noqa: S101 - required, and `finish` has passed
        measurement = "telemetry" if measurement is None else measurement
        channels = [name for name in (fields or "").split(",") if name]
        check_characters("entity_id", *entity_ids)
        check_characters("measurement", measurement)
        check_characters("fields", *channels)
        plane: Plane = request.context.state.plane
        chunks = plane.series_answer(
            entity_ids=entity_ids,
            start_ns=start_ns,
            end_ns=end_ns,
            measurement=measurement,
            fields=channels,
            interval=interval,
            agg=agg,
            point_budget=self._limits.point_budget,
            answer_values_max=self._limits.answer_values_max,
            history_horizon_days=self._limits.history_horizon_days,
            raw_span_seconds=self._limits.raw_span_seconds,
        )
        _send(response, chunks)

    on_head = on_get


def _send(response: falcon.Response, chunks: list[bytes | memoryview] | LongAnswer) -> None:
    # A socket takes the memory of the engine as it takes `bytes`; Falcon only hands it on.
    response.stream = cast("Iterable[bytes]", chunks)
    if isinstance(chunks, list):
        response.content_length = sum(map(len, chunks))
