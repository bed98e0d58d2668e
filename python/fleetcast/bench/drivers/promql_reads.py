"""Reads by Prometheus' HTTP API: a metric for each field, times in milliseconds."""

from __future__ import annotations

import http.client
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fleetcast.bench.faults import DatabaseFault
from fleetcast.bench.rows import ENTITY
from fleetcast.bench.truth import WEEK_NS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleetcast.bench.driver import Fields, Samples
    from fleetcast.bench.rows import RowNames

NS_PER_MS = 1_000_000
TIMEOUT_SECONDS = 60.0
_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_]")


def label(name: str) -> str:
    """Returns a name that Prometheus takes. Example: `fuel_state` for `fuel-state`."""
    return _FORBIDDEN.sub("_", name)


class PromqlReads:
    """One connection to read; see `Session`.

    `newest_time` is the expression for the times of the newest samples of a selector and a range.
    """

    def __init__(self, port: int, names: RowNames, newest_time: str) -> None:
        self._names = names
        self._newest_time = newest_time
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
        self.close = self._connection.close

    def newest(self, measurement: str, end_ns: int) -> dict[str, tuple[int, Fields]]:
        """Puts the newest row together from series.

        Each field is a series of its own, and so are rows of an entity that lack a tag.
        """
        found: dict[str, tuple[int, Fields]] = {}
        for field in self._names.fields[measurement]:
            selector, span = _selector(measurement, field), f"[{WEEK_NS // NS_PER_MS}ms]"
            newest_time = self._newest_time.format(selector=selector, span=span)
            times = {labels: time for _, labels, time in self._vector(newest_time, end_ns)}
            values = self._vector(f"last_over_time({selector}{span})", end_ns)
            for entity, labels, value in values:
                time_ns = round(times[labels] * 1_000) * NS_PER_MS
                before, fields = found.get(entity, (time_ns, {}))
                if time_ns > before:
                    fields = {}
                if time_ns >= before:
                    found[entity] = time_ns, {**fields, field: value}
        return found

    def window(
        self, measurement: str, entities: Sequence[str], start_ns: int, end_ns: int
    ) -> Samples:
        """Rows are put together from series; the ends of a range are left to the client."""
        found: Samples = {}
        span = f"[{(end_ns - start_ns) // NS_PER_MS + 1}ms]"
        for field in self._names.fields[measurement]:
            selector = _selector(measurement, field, entities)
            for series in self._ask(selector + span, end_ns):
                rows = found.setdefault(series["metric"][ENTITY], {})
                for time_seconds, value in series["values"]:
                    time_ns = round(time_seconds * 1_000) * NS_PER_MS
                    if start_ns <= time_ns < end_ns:
                        rows.setdefault(time_ns, {})[field] = float(value)
        return found

    def _vector(
        self, expression: str, end_ns: int
    ) -> Iterator[tuple[str, frozenset[tuple[str, str]], float]]:
        """Yields entity, labels without the metric, and value of each series."""
        for series in self._ask(expression, end_ns):
            labels = {name: text for name, text in series["metric"].items() if name != "__name__"}
            yield labels[ENTITY], frozenset(labels.items()), float(series["value"][1])

    def _ask(self, expression: str, time_ns: int) -> Any:  # noqa: ANN401 - JSON
        form = {"query": expression, "time": f"{time_ns // NS_PER_MS / 1_000:.3f}"}
        self._connection.request("POST", "/api/v1/query", urlencode(form), _HEADERS)
        answer = json.loads(self._connection.getresponse().read())
        if answer["status"] != "success":
            raise DatabaseFault(answer.get("error", "a query failed"))
        return answer["data"]["result"]


def _selector(measurement: str, field: str, entities: Sequence[str] = ()) -> str:
    # JSON writes a text as PromQL reads it.
    metric = json.dumps(f"{measurement}_{label(field)}")
    if not entities:
        return f"{{__name__={metric}}}"
    chosen = json.dumps("|".join(map(re.escape, entities)))
    return f"{{__name__={metric},{ENTITY}=~{chosen}}}"
