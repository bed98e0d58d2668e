"""Serving in this process: a store, releases and a clock that the test moves."""

from __future__ import annotations

import json

from fleetcast.engine import ForecastQuestion, encode_records, format_time
from fleetcast.forecast.families import ANSWERED
from fleetcast.forecast.serving.clock import Clock
from fleetcast.forecast.serving.predictions import Predictions
from fleetcast.metrics import Counters, Totals

MINUTE_NS = 60_000_000_000
START_NS = 1_790_000_000_000_000_000 // MINUTE_NS * MINUTE_NS


class MovedClock(Clock):
    """Stands still until the test moves it; `step` is what a person does to the wall clock."""

    def __init__(self):
        super().__init__()
        self.wall_ns, self.since_boot_ns = START_NS, MINUTE_NS

    def now_ns(self):
        return self.wall_ns

    def elapsed_ns(self):
        return self.since_boot_ns

    def advance(self, duration_ns):
        self.wall_ns += duration_ns
        self.since_boot_ns += duration_ns

    def step(self, duration_ns):
        self.wall_ns += duration_ns


def write(plane, entities, minutes, snr_db=10.0):
    """A row a minute of each link, in the middle of the minute."""
    for minute in minutes:
        time_ns = START_NS + minute * MINUTE_NS + MINUTE_NS // 2
        rows = [
            {
                "measurement": "link",
                "time": format_time(time_ns),
                "tags": {"entity_id": each},
                "fields": {"snr_db": snr_db},
            }
            for each in entities
        ]
        plane.write_json(encode_records(rows), now_ns=START_NS + 10_000 * MINUTE_NS)


def serving(store, releases, settings, counters=None):
    return Predictions(store, releases, settings, counters or Counters.alone())


def answer(predictions, plane, *entities, horizon=None, account="account", family="snr"):
    asked = ForecastQuestion(ANSWERED[family], entities, horizon)
    return json.loads(predictions.answer(plane, account, asked))


def codes(document):
    return {each["entity_id"]: each["code"] for each in document["entity_errors"]}


def kept(store):
    """The number of records in each table of tenants."""
    with store.read() as records:
        return {
            table: records.count(table)
            for table in ("leases", "cooldowns", "values", "pending")
            if records.count(table)
        }


def counted(counters, name):
    """The sum of all series of a counter."""
    totals = Totals(counters.shared).all()
    return sum(value for series, value in totals.items() if series.partition("{")[0] == name)
