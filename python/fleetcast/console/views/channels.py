"""Channels of entities over a window: the mean of each step, its minimum and its maximum.

`GET /topology/series` has the same steps and the same limits.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, NamedTuple, cast

from fleetcast.console.tenant_planes import read_plane
from fleetcast.durations import parse_duration
from fleetcast.engine import INTERVALS
from fleetcast.surface.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.console.query import ConsoleQuery
    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import Aggregation, Interval, Plane

_WINDOWS_MAX = 800
_ENTITIES_MAX = 16
_CHANNELS_MAX = 16
_SECONDS_MAX = 366 * 86_400
_VALUES_MAX = 100_000
_HOUR_SECONDS = 3_600
_NS_PER_SECOND = 1_000_000_000
_EARLIEST_NS = -(2**63)
_AGGREGATIONS: tuple[Aggregation, ...] = ("mean", "min", "max")


class _AskedChannels(NamedTuple):
    """Entities, channels and window of a request."""

    measurement: str
    entity_ids: list[str]
    fields: list[str]
    start_ns: int
    end_ns: int
    raw: bool

    @staticmethod
    def of(query: ConsoleQuery) -> _AskedChannels:
        entity_ids = [query.needed("entity_id"), *query.texts("more")]
        if len(entity_ids) > _ENTITIES_MAX:
            query.refuse("more", f"At most {_ENTITIES_MAX} entities are shown at a time.")
        fields = query.texts("fields")
        if len(fields) > _CHANNELS_MAX:
            query.refuse("fields", f"At most {_CHANNELS_MAX} channels are shown at a time.")
        seconds = max(query.whole("seconds", _HOUR_SECONDS, _SECONDS_MAX), 1)
        asked_ns = query.time_ns("end")
        end_ns = time.time_ns() if asked_ns is None else asked_ns
        start_ns = max(end_ns - seconds * _NS_PER_SECOND, _EARLIEST_NS)
        raw = query.choice("raw", ("", "1"), "") == "1"
        return _AskedChannels(
            query.needed("measurement"), entity_ids, fields, start_ns, end_ns, raw
        )

    def interval(self, values_max: int, kept_ns: int | None) -> Interval:
        """Returns the shortest step that gives few enough windows, else the longest step.

        If the window has hours that outlived their rows, the last of them at `kept_ns`, the step is
        an hour: shorter steps would leave them out.
        """
        if kept_ns is not None and self.start_ns <= kept_ns:
            return "1h"
        windows_max = min(_WINDOWS_MAX, values_max // len(self.entity_ids))
        span_ns = self.end_ns - self.start_ns
        fitting = (
            each
            for each in INTERVALS
            if span_ns <= windows_max * parse_duration(each) * _NS_PER_SECOND
        )
        return cast("Interval", next(fitting, INTERVALS[-1]))


def channels(services: ConsoleServices, tenant: str, query: ConsoleQuery) -> Answer:
    """Returns three answers of the engine, by aggregation, or with `raw` one answer of rows.

    `entity_id` and the JSON array `more` name the entities. Answers have the `fields` that the
    query names, or the first fields; `names` has all. `start` and `end` are the window in seconds.
    Raises `ConsoleRefused`, `Refused`, `ControlStoreUnavailable`.
    """
    asked = _AskedChannels.of(query)
    limits = services.settings().limits

    def answer(
        plane: Plane,
        names: Sequence[str],
        interval: Interval | None,
        aggregation: Aggregation | None,
    ) -> bytes:
        return plane.series_json(
            entity_ids=asked.entity_ids,
            start_ns=asked.start_ns,
            end_ns=asked.end_ns,
            measurement=asked.measurement,
            fields=names,
            interval=interval,
            agg=aggregation,
            point_budget=limits.point_budget,
            answer_values_max=min(limits.answer_values_max, _VALUES_MAX),
            history_horizon_days=limits.history_horizon_days,
            raw_span_seconds=limits.raw_span_seconds,
            any_measurement=True,
        )

    def read(plane: Plane) -> tuple[list[str], dict[str, bytes]]:
        # The statistics of blocks answer steps of an hour, so the names of channels cost little.
        names = _channels(answer(plane, (), "1h", "last"))
        # An empty list would mean all channels, and no channel has an empty name.
        shown = asked.fields or names[:_CHANNELS_MAX] or [""]
        if asked.raw:
            return names, {"raw": answer(plane, shown, None, None)}
        values_max = min(limits.point_budget, _VALUES_MAX // (len(shown) + 1))
        step = asked.interval(values_max, plane.kept_hours().last_ns)
        return names, {each: answer(plane, shown, step, each) for each in _AGGREGATIONS}

    names, bodies = read_plane(services, tenant, read)
    about: dict[str, object] = {
        "names": names,
        "start": asked.start_ns / _NS_PER_SECOND,
        "end": asked.end_ns / _NS_PER_SECOND,
        "raw_seconds": limits.raw_span_seconds,
    }
    return Answer(200, _joined(about, bodies))


def _joined(about: dict[str, object], bodies: Mapping[str, bytes]) -> list[bytes]:
    """Returns the pieces of a JSON object with texts of the engine as members."""
    pieces = [json.dumps(about, separators=(",", ":")).encode().removesuffix(b"}")]
    for name, body in bodies.items():
        pieces += [b',"%s":' % name.encode(), body]
    return [*pieces, b"}"]


def _channels(body: bytes) -> list[str]:
    """Returns the names of the channels of an answer, each once."""
    return list(
        dict.fromkeys(name for each in json.loads(body)["series"] for name in each["channels"])
    )
