"""All metrics: name, kind and meaning.

A new metric is a line of `families.txt` and a call at the counted event. A counter ends in
`_total`. Histograms and counters in `_seconds_total` are counted in nanoseconds and shown in
seconds.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Literal, NamedTuple

_HISTOGRAMS = {
    "fleetcast_http_request_seconds",
    "fleetcast_grpc_request_seconds",
    "fleetcast_commit_seconds",
}


class Metric(NamedTuple):
    """A metric and all its label sets."""

    name: str
    help: str

    @property
    def kind(self) -> Literal["counter", "gauge", "histogram"]:
        """Kind of the metric, as both texts name it."""
        if self.name in _HISTOGRAMS:
            return "histogram"
        return "counter" if self.name.endswith("_total") else "gauge"


def _read() -> tuple[Metric, ...]:
    """Reads the table of metrics: a name and its meaning on each line."""
    text = files("fleetcast.metrics").joinpath("families.txt").read_text("utf-8")
    return tuple(Metric(*line.split(" ", 1)) for line in text.splitlines())


FAMILIES = _read()

BUCKETS_SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Upper bounds of every histogram, in seconds. One more bucket without a bound follows the last."""
