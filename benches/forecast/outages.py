"""Outages on real links: what forecasts miss beside the last value."""

from __future__ import annotations

import numpy as np

from benches.forecast.answers import DAY_NS
from fleetcast.forecast.backtest import backtest
from fleetcast.forecast.families import MINUTE_NS
from fleetcast.forecast.outages import report

THRESHOLD_DB = 3.0
STEP_MINUTES = 5
# Days before the judged period that calibrate, and one link in so many that is watched.
SETS = {"satellite": (17, 1), "microwave": (3, 4)}


def outage_lines(forecaster, one, rows):
    """A table for one set; `rows` are those of each entity. Nothing for sets without a day to."""
    if one.name not in SETS:
        return []
    days, every = SETS[one.name]
    step_ns = STEP_MINUTES * MINUTE_NS
    asked = np.arange(one.test.start_ns - days * DAY_NS, one.test.end_ns, step_ns)
    links = {str(index): link for index, link in enumerate(rows[::every])}
    watches = backtest(forecaster, links, asked, lambda _: None, threshold_db=THRESHOLD_DB).watches
    found = report(watches, STEP_MINUTES, one.test.start_ns)
    lines = [
        (
            f"Outages of {len(links)} link{'s' * (len(links) > 1)} ({THRESHOLD_DB:g} dB below the"
            f" median), an issue time each {STEP_MINUTES} minutes, calibrated on the {days} days"
            " before:"
        ),
        "",
        "| forecast | outages | missed | false alarms a link-day | median minutes ahead |",
        "|---|---|---|---|---|",
    ]
    for who, line in found.forecasts.items():
        cells = (line.outages, line.missed, f"{line.false_alarms:.2f}", line.lead_minutes)
        lines.append(f"| {who} | " + " | ".join(map(str, cells)) + " |")
    fewer = found.fewer_missed
    if fewer is not None:
        lines += ["", f"Fewer missed: {fewer.share:.0%} ({fewer.low:.0%} to {fewer.high:.0%})."]
    return [*lines, ""]
