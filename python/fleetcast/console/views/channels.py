"""Channels of an entity over a window: the mean of each step, its minimum and its maximum.

`GET /topology/series` has the same steps and the same limits.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, cast

from fleetcast.console.answers import Answer
from fleetcast.console.tenant_planes import read_plane
from fleetcast.durations import parse_duration
from fleetcast.engine import INTERVALS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.console.query import ConsoleQuery
    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import Aggregation, Interval, Plane

_WINDOWS_MAX = 800
_CHANNELS_MAX = 16
_SECONDS_MAX = 366 * 86_400
_VALUES_MAX = 100_000
_HOUR_SECONDS = 3_600
_NS_PER_SECOND = 1_000_000_000
_EARLIEST_NS = -(2**63)
_AGGREGATIONS: tuple[Aggregation, ...] = ("mean", "min", "max")


def channels(services: ConsoleServices, tenant: str, query: ConsoleQuery) -> Answer:
    """Returns three answers of the engine, by aggregation.

    Answers have the `fields` that the query names, or the first fields. Raises `ConsoleRefused`,
    `Refused`, `ControlStoreUnavailable`.
    """
    entity_id, measurement = query.needed("entity_id"), query.needed("measurement")
    fields = [name for name in query.text("fields").split(",") if name]
    if len(fields) > _CHANNELS_MAX:
        query.refuse("fields", f"At most {_CHANNELS_MAX} channels are shown at a time.")
    seconds = max(query.whole("seconds", _HOUR_SECONDS, _SECONDS_MAX), 1)
    asked_ns = query.time_ns("end")
    end_ns = time.time_ns() if asked_ns is None else asked_ns
    limits = services.settings().limits

    def answer(
        plane: Plane, names: Sequence[str], interval: Interval, aggregation: Aggregation
    ) -> bytes:
        return plane.series_json(
            entity_ids=[entity_id],
            start_ns=max(end_ns - seconds * _NS_PER_SECOND, _EARLIEST_NS),
            end_ns=end_ns,
            measurement=measurement,
            fields=names,
            interval=interval,
            agg=aggregation,
            point_budget=limits.point_budget,
            answer_values_max=min(limits.answer_values_max, _VALUES_MAX),
            history_horizon_days=limits.history_horizon_days,
            any_measurement=True,
        )

    def read(plane: Plane) -> list[bytes]:
        # The statistics of blocks answer steps of an hour, so the names of channels cost little.
        names = fields or _channels(answer(plane, (), "1h", "last"))
        return [answer(plane, names, _interval(seconds), each) for each in _AGGREGATIONS]

    bodies = read_plane(services, tenant, read)
    pieces: list[bytes] = []
    for aggregation, body in zip(_AGGREGATIONS, bodies, strict=True):
        pieces += [b"," if pieces else b"{", b'"%s":' % aggregation.encode(), body]
    return Answer(200, (*pieces, b"}"))


def _channels(body: bytes) -> list[str]:
    """Returns the first channels of an answer.

    If there are no channels, returns a name that no entity has. An empty list would mean all
    channels.
    """
    (series,) = json.loads(body)["series"]
    return list(series["channels"])[:_CHANNELS_MAX] or [""]


def _interval(seconds: int) -> Interval:
    """Returns the shortest step that gives few enough windows, else the longest step."""
    fitting = (each for each in INTERVALS if seconds <= _WINDOWS_MAX * parse_duration(each))
    return cast("Interval", next(fitting, INTERVALS[-1]))
