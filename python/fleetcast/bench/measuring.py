"""The measurement of one database: load, rest, read, compare, watch, kill, compare again."""

from __future__ import annotations

import math
import random
import statistics
import time
from bisect import bisect_right
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fleetcast.bench.faults import DatabaseFault
from fleetcast.bench.load import load
from fleetcast.bench.rows import NS_PER_SECOND
from fleetcast.bench.syncs import watch
from fleetcast.bench.truth import Truth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleetcast.bench.driver import Driver, Session
    from fleetcast.bench.load import Loaded
    from fleetcast.bench.queries import TimedQuery
    from fleetcast.bench.rows import SentRow
    from fleetcast.bench.workload import Workload

_NEWEST_READS = 10
_WINDOW_READS = 200
_QUERY_READS = 20
_WINDOW_NS = 3_600 * NS_PER_SECOND
REPEATS_MIN = 6  # with fewer, even the whole range holds the median less surely than 95 %
_DOUBT = 0.05
_BUCKETS = [0.0001 * 10 ** (step / 5) for step in range(26)]  # to 10 seconds


def measure(driver: Driver, workload: Workload, say: Callable[[str], object]) -> dict[str, Any]:
    """Returns the figures of one database, whose folder is new."""
    fleet, truth = workload.fleet(), Truth(workload.names)
    say("starts")
    try:
        driver.start()
        result: dict[str, Any] = {"about": driver.about}
        if workload.warm_up_rows:
            say("is warmed up")
            _write(driver, workload, workload.batches(fleet, workload.warm_up_rows), truth)
        result["load"] = _load(driver, workload, fleet, truth, say)
        if workload.rate is not None:
            say(f"is loaded at {workload.rate:,.0f} rows/s")
            result["open"] = _open_loop(driver, workload, fleet, truth, workload.rate)
        if driver.reads:
            say("answers reads")
            session = driver.connect()
            result["reads"] = _reads(session, truth, workload)
            say("is compared with the truth")
            result["answers"] = asdict(truth.compare(session))
            result["queries"], wrong = _queries(session, truth, workload)
            result["answers"]["queries_wrong"] = wrong
            session.close()
        say("is watched")
        watched = workload.batches(fleet, workload.watched_rows)
        result["synced"] = watch(driver, [driver.encode(rows) for rows in watched])._asdict()
        truth.add(row for rows in watched[: result["synced"]["batches"]] for row in rows)
        if driver.process() is not None:
            say("is killed")
            killed = workload.batches(fleet, workload.killed_rows)
            result["kill"] = _killed(driver, workload, killed, truth)
            if driver.reads:
                # Rows that were missing before the kill do not count as lost by the kill.
                result["kill"]["lost_rows"] -= result["answers"]["missing"]
    finally:
        driver.stop()
    return result


def _write(
    driver: Driver,
    workload: Workload,
    batches: list[list[SentRow]],
    truth: Truth,
    batches_per_second: float | None = None,
) -> Loaded:
    """Writes batches, which the database then has. Raises `DatabaseFault`."""
    payloads = [driver.encode(rows) for rows in batches]
    done = load(driver, payloads, workload.connections, batches_per_second=batches_per_second)
    if done.faults:
        raise DatabaseFault(done.faults[0])
    for batch in batches:
        truth.add(batch)
    return done


def _load(
    driver: Driver,
    workload: Workload,
    fleet: Iterator[SentRow],
    truth: Truth,
    say: Callable[[str], object],
) -> dict[str, Any]:
    rates: list[float] = []
    latencies: list[float] = []
    seconds, rows, values = 0.0, 0, 0
    before = driver.cpu_seconds()
    while len(rates) < workload.repeats_max and not is_known(rates, workload.precision):
        say("is loaded")
        batches = workload.batches(fleet, workload.rows)
        done = _write(driver, workload, batches, truth)
        written = sum(map(len, batches))
        rates.append(written / done.seconds)
        latencies += done.latencies
        seconds, rows = seconds + done.seconds, rows + written
        values += sum(len(row.fields) for each in batches for row in each)
    after = driver.cpu_seconds()
    say("comes to rest")
    driver.settle()
    settled = driver.cpu_seconds()
    stored = driver.stored_bytes()
    return {
        "rows": rows,
        "values": values,
        "entities": sum(len(truth.entities(measurement)) for measurement in workload.names.fields),
        "seconds": seconds,
        "rows_per_second": statistics.median(rates),
        "rows_per_second_interval": interval_of(rates),
        "rows_per_second_of_repeats": rates,
        "rows_per_cpu_second": _share(rows, before, after),
        "rows_per_cpu_second_settled": _share(rows, before, settled),
        "stored_bytes": stored,
        "bytes_per_value": None if stored is None else stored / values,
        "latency": latency_of(latencies),
    }


def _open_loop(
    driver: Driver, workload: Workload, fleet: Iterator[SentRow], truth: Truth, rate: float
) -> dict[str, Any]:
    """Writes as many rows as one repeat, at `rate` rows per second."""
    batches = workload.batches(fleet, workload.rows)
    done = _write(driver, workload, batches, truth, rate / workload.batch_rows)
    return {
        "rate": rate,
        "rows_per_second": sum(map(len, batches)) / done.seconds,
        "latency": latency_of(done.latencies),
    }


def interval_of(rates: list[float]) -> tuple[float, float]:
    """Returns an interval that holds the median of all rates with 95 % probability.

    Up to five rates give the least and the greatest, which hold it less surely. Example: of 11
    rates in order, the second and the tenth.
    """
    ordered, count = sorted(rates), len(rates)
    outside = 0
    # The number of rates below the median is binomial, like heads of coins.
    while 2 * sum(math.comb(count, heads) for heads in range(outside + 2)) / 2**count <= _DOUBT:
        outside += 1
    return ordered[outside], ordered[count - 1 - outside]


def is_known(rates: list[float], precision: float) -> bool:
    """Returns true if at least six rates put their median between bounds of this precision."""
    if len(rates) < REPEATS_MIN:
        return False
    low, high = interval_of(rates)
    return high - low <= 2 * precision * statistics.median(rates)


def _share(rows: int, before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else rows / max(after - before, 1e-9)


def latency_of(seconds: list[float]) -> dict[str, Any]:
    """Returns quantiles, and a count for each bucket.

    Example: with bounds 1 and 2, latencies of 0.5, 1.5 and 3 s give the counts 1, 1, 1.
    """
    ordered = sorted(seconds)
    ends = [0, *(bisect_right(ordered, bound) for bound in _BUCKETS), len(ordered)]
    return {
        "p50": statistics.median(ordered),
        "p90": ordered[math.ceil(0.9 * len(ordered)) - 1],
        "p99": ordered[math.ceil(0.99 * len(ordered)) - 1],
        "p999": ordered[math.ceil(0.999 * len(ordered)) - 1],
        "max": ordered[-1],
        "bounds": _BUCKETS,
        "counts": [upper - lower for lower, upper in pairwise(ends)],
    }


def _reads(session: Session, truth: Truth, workload: Workload) -> dict[str, Any]:
    """Times reads of all newest rows, and reads of an hour of one entity."""
    dice = random.Random(workload.seed)  # noqa: S311 - no secret
    start, end = truth.span()
    written = {measurement: truth.entities(measurement) for measurement in workload.names.fields}
    names = {measurement: entities for measurement, entities in written.items() if entities}

    def newest() -> int:
        return len(session.newest(dice.choice([*names]), end))

    def window() -> int:
        measurement = dice.choice([*names])
        entity = dice.choice(names[measurement])
        first = dice.randrange(start, max(end - _WINDOW_NS, start + 1))
        answer = session.window(measurement, [entity], first, first + _WINDOW_NS)
        return sum(map(len, answer.values()))

    return {"newest": _timed(newest, _NEWEST_READS), "window": _timed(window, _WINDOW_READS)}


def _queries(session: Session, truth: Truth, workload: Workload) -> tuple[dict[str, Any], int]:
    """Times the queries of the workload, and counts those whose answer differs from the truth."""
    found: dict[str, Any] = {}
    wrong = 0
    for number, query in enumerate(workload.queries, 1):
        of_all = truth.entities(query.measurement), truth.span()[1]
        wrong += query.answer(session, *of_all) != query.answer(truth, *of_all)
        count = partial(_count, query, session, *of_all)
        found[f"{number} {query.name}"] = _timed(count, _QUERY_READS)
    return found, wrong


def _count(query: TimedQuery, session: Session, entities: list[str], end_ns: int) -> int:
    return len(query.answer(session, entities, end_ns))


def _timed(read: Callable[[], int], count: int) -> dict[str, Any]:
    read()
    spent, rows = [], 0
    for _ in range(count):
        before = time.perf_counter()
        rows += read()
        spent.append(time.perf_counter() - before)
    return {**latency_of(spent), "rows": rows}


def _killed(
    driver: Driver, workload: Workload, batches: list[list[SentRow]], truth: Truth
) -> dict[str, Any]:
    """Kills the database by `kill -9` under load, restarts it, and compares it with the truth.

    The seed decides after how many acknowledged batches the database is killed.
    """
    dice = random.Random(workload.seed)  # noqa: S311 - no secret
    at = dice.randint(len(batches) // 4, len(batches) // 2)
    payloads = [driver.encode(rows) for rows in batches]

    def answered(count: int) -> None:
        if count == at:
            driver.kill()

    done = load(driver, payloads, workload.connections, answered)
    if len(done.acknowledged) < at:
        raise DatabaseFault(done.faults[0])
    acknowledged = set(done.acknowledged)
    unsure = [index for index in done.begun if index not in acknowledged]
    before = time.perf_counter()
    driver.start()
    result: dict[str, Any] = {
        "acknowledged_rows": sum(len(batches[index]) for index in acknowledged),
        "restart_seconds": time.perf_counter() - before,
    }
    if not driver.reads:
        return {**result, "lost_rows": None}
    for index in acknowledged:
        truth.add(batches[index])
    session = driver.connect()
    parts = [truth.has(session, batches[index]) for index in unsure]
    unsure_rows = [row for index in unsure for row in batches[index]]
    missing = truth.compare(session).missing
    session.close()
    return {
        **result,
        "lost_rows": missing,
        "unacknowledged_rows": len(unsure_rows),
        "unacknowledged_stored": sum(part.count(True) for part in parts),
        "torn_batches": sum(any(part) and not all(part) for part in parts),
    }
