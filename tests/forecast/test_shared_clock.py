"""The clock of many nodes, while the database answers and while it does not."""

from __future__ import annotations

import time

from fleetcast.errors import StoreUnreachable
from fleetcast.forecast.serving.clock import SharedClock

HOUR_NS = 3_600_000_000_000


def test_while_the_database_is_silent_its_last_lead_holds(monkeypatch):
    elapsed, answers = [0], [time.time_ns() // 1_000 + HOUR_NS // 1_000]
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: elapsed[0])

    def database_us():
        if not answers:
            raise StoreUnreachable
        return answers.pop()

    clock = SharedClock(database_us)
    shown_ns = clock.elapsed_ns()
    assert shown_ns > time.time_ns() + HOUR_NS // 2
    elapsed[0] += HOUR_NS
    assert clock.elapsed_ns() == shown_ns + HOUR_NS
