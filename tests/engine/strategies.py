"""Random batches and queries that meet where it matters: few names, few instants, odd values.

Hypothesis draws a seed and a size, and a plain random generator makes the content. Drawn value by
value, most records and queries would be the simplest ones, and hardly a read would find anything.
"""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from .model import SECOND_NS, YEAR_2000_NS

# A minute before midnight, so that the instants below lie on the bounds of windows and in two days.
BASE_NS = (1_790_035_200 - 60) * SECOND_NS
NOW_NS = BASE_NS + 7200 * SECOND_NS
MEASUREMENTS = ("link", "satellite", "weather", "pool_interval")
ENTITIES = ("a", "b", 'c "quoted"', "é")
INSTANTS_S = (0, 15, 30, 60, 75, 300)
FLOATS = (0.0, -0.0, 5e-324, 1e15 + 0.5, 1 / 3, -1e300)
RECORDS_MAX = 40

seeds = st.integers(0, 2**63 - 1)


def _float(dice: Random) -> float:
    return dice.choice(FLOATS) if dice.random() < 0.3 else dice.randint(-1000, 1000) / 10


FIELDS = {
    "snr_db": _float,
    "elevation_deg": _float,
    "count": lambda dice: dice.randint(-5, 5),
    "up": lambda dice: dice.random() < 0.5,
    "mode": lambda dice: dice.choice(["", "tx", "é\n"]),
}


def _instant_ns(dice: Random) -> int:
    return BASE_NS + dice.choice(INSTANTS_S) * SECOND_NS


def _time_ns(dice: Random) -> int:
    kind = dice.random()
    if kind < 0.7:
        return _instant_ns(dice)
    if kind < 0.8:
        return _instant_ns(dice) + dice.choice([-1, 1])
    if kind < 0.95:
        return BASE_NS + dice.randint(-60, 7100) * SECOND_NS + 1_000_000
    return dice.choice([YEAR_2000_NS - 1, NOW_NS + SECOND_NS])


def _tags(dice: Random) -> dict[str, str]:
    tags = {}
    if dice.random() < 0.9:
        tags["entity_id"] = dice.choice(["a", "a", "a", *ENTITIES, *ENTITIES, ""])
    if dice.random() < 0.4:
        tags["site"] = dice.choice("xy")
    if dice.random() < 0.1:
        tags["tenant"] = "someone-else"
    return tags


def _fields(dice: Random) -> dict:
    """Some of the few fields that most records have, and now and then many that few have."""
    fields = {name: make(dice) for name, make in FIELDS.items() if dice.random() < 0.4}
    if dice.random() < 0.1:
        start = dice.randint(0, 40)
        fields |= {
            f"wide_{at:02}": _float(dice) for at in range(start, start + dice.randint(1, 20))
        }
    return fields


def _record(dice: Random) -> dict:
    return {
        "measurement": dice.choice(["link", "link", "link", *MEASUREMENTS]),
        "time_ns": _time_ns(dice),
        "tags": _tags(dice),
        "fields": _fields(dice),
    }


def _batch(seed: int, records: int) -> list[dict]:
    dice = Random(seed)
    batch = [_record(dice) for _ in range(records)]
    if batch and dice.random() < 0.05:
        batch[-1]["fields"] = {"mode": 1.5}  # of another type than elsewhere
    return batch


def _latest_query(seed: int) -> dict:
    dice = Random(seed)
    return {
        "as_of_ns": NOW_NS if dice.random() < 0.3 else _time_ns(dice),
        "freshness_ns": dice.choice([1, 15, 30, 60, 604_800]) * SECOND_NS,
        "measurement": dice.choice([None, None, "link", "satellite", "weather"]),
    }


def _series_query(seed: int) -> dict:
    """Raw reads within an hour of the data, aggregated ones over up to three."""
    dice = Random(seed)
    start_s = dice.choice([-60, -60, 0, 15, 60, dice.randint(-60, 3500)])
    interval = dice.choice([None, None, "15s", "1m", "1h"])
    if interval is not None and dice.random() < 0.5:
        start_s -= dice.choice([0, 3600, 3540])
    spans = [15, 60, 75, 135, 3600] + ([3660, 7200, 10_800] if interval else [])
    query = {
        "entity_ids": ["a", *dice.choices([*ENTITIES, "ghost"], k=dice.randint(0, 5))],
        "start_ns": BASE_NS + start_s * SECOND_NS,
        "end_ns": BASE_NS + (start_s + dice.choice(spans)) * SECOND_NS,
        "measurement": dice.choice(["link", "link", "satellite", "weather"]),
        "fields": dice.choice([None, None, ["snr_db"], ["up", "count", "ghost"]]),
        "interval": interval,
        "agg": dice.choice([None, "mean", "min", "max", "last"]) if interval else None,
        "answer_values_max": dice.choice([1_000_000, 1_000_000, 10, 100]),
    }
    if interval is None:
        query["point_budget"] = dice.choice([16, 10_000])
    return query


def _crowded_batch(seed: int, records: int) -> list[dict]:
    """Two entities at two instants: tag sets in turns, fields of many names, some texts large."""
    dice = Random(seed)

    def fields() -> dict:
        wide = {
            f"f{dice.randrange(60)}": float(dice.randrange(9)) for _ in range(dice.randrange(9))
        }
        size = dice.choice([0, 0, 0, 300_000, 600_000, 1_100_000])
        return wide | {f"text{dice.randrange(4)}": dice.choice("xy\u00e9") * size, "up": True}

    return [
        {
            "measurement": "link",
            "time_ns": BASE_NS + dice.choice([0, 15, 15]) * SECOND_NS,
            "tags": {
                "entity_id": dice.choice("ab"),
                dice.choice(["site", "s2"]): dice.choice("xyz"),
            },
            "fields": fields(),
        }
        for _ in range(records)
    ]


crowded_batches = st.builds(_crowded_batch, seeds, st.integers(1, 5))
batches = st.builds(_batch, seeds, st.integers(0, RECORDS_MAX))
latest_queries = seeds.map(_latest_query)


def series_queries() -> st.SearchStrategy[dict]:
    """See `_series_query`."""
    return seeds.map(_series_query)
