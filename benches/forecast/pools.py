"""Processor time of a backtest of pools, and how much of it is due to models of their own.

    python -m benches.forecast.pools [--repeats 9]

Twelve simulated pools over ten days, an issue time each 15 or 45 minutes; both take turns.
`perf stat -e instructions:u` around it counts what two versions execute.
"""

from __future__ import annotations

import argparse
import statistics
import time

from fleetcast.forecast.backtest import backtest, origins
from fleetcast.forecast.families import DEMAND, MINUTE_NS
from fleetcast.forecast.model import Forecaster
from fleetcast.forecast.training.sets import Span
from fleetcast.forecast.training.simulated import smooth_pools

DAY_NS = 1440 * MINUTE_NS
START_NS = 20_000 * DAY_NS
POOLS = 12
DAYS = 10
HISTORY_DAYS = 60


class Alone(Forecaster):
    """The network's answers as they are."""

    is_mixed = False


def seconds(forecaster, pools, asked):
    start = time.process_time()
    backtest(forecaster, pools, asked, lambda _: None)
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    span = Span(START_NS - HISTORY_DAYS * DAY_NS, START_NS + (DAYS + 2) * DAY_NS)
    pools = smooth_pools(span, POOLS, 0)
    forecasters = {"mixed": Forecaster(DEMAND), "alone": Alone(DEMAND)}
    for minutes in (15, 45):
        end_ns = START_NS + DAYS * DAY_NS - DEMAND.step_ns
        asked = origins(START_NS, end_ns, minutes * MINUTE_NS)
        taken = {who: [] for who in forecasters}
        for _ in range(repeats + 1):  # the first is not counted
            for who, forecaster in forecasters.items():
                taken[who].append(seconds(forecaster, pools, asked))
        mixed, alone = (statistics.median(times[1:]) for times in taken.values())
        print(
            f"each {minutes} minutes: {mixed:.3f} s, network alone {alone:.3f} s,"
            f" ratio {mixed / alone:.2f}"
        )


if __name__ == "__main__":
    main()
