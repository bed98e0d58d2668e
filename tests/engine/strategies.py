"""Random batches and queries that meet where it matters: few names, close times, odd values."""

from __future__ import annotations

from hypothesis import strategies as st

from .model import SECOND_NS, YEAR_2000_NS

BASE_NS = 1_790_000_000 * SECOND_NS
NOW_NS = BASE_NS + 7200 * SECOND_NS
MEASUREMENTS = ("link", "satellite", "weather", "pool_interval")
ENTITIES = ("a", "b", 'c "quoted"', "é")

floats = st.one_of(
    st.integers(-1000, 1000).map(lambda tenths: tenths / 10),
    st.sampled_from([0.0, -0.0, 5e-324, 1e15 + 0.5, 1 / 3, -1e300]),
)
FIELDS = {
    "snr_db": floats,
    "elevation_deg": floats,
    "count": st.integers(-5, 5),
    "up": st.booleans(),
    "mode": st.sampled_from(["", "tx", "é\n"]),
}
times_ns = st.one_of(
    st.integers(0, 40).map(lambda step: BASE_NS + step * 10 * SECOND_NS),
    st.integers(-60, 7100).map(lambda seconds: BASE_NS + seconds * SECOND_NS + 1_000_000),
    st.sampled_from([YEAR_2000_NS - 1, NOW_NS + SECOND_NS]),
)
tags = st.fixed_dictionaries(
    {},
    optional={
        "entity_id": st.sampled_from(ENTITIES),
        "site": st.sampled_from(["x", "y"]),
        "tenant": st.just("someone-else"),
    },
)
records = st.fixed_dictionaries(
    {
        "measurement": st.sampled_from(MEASUREMENTS),
        "time_ns": times_ns,
        "tags": tags,
        "fields": st.fixed_dictionaries({}, optional=FIELDS),
    }
)
batches = st.lists(records, max_size=12)

latest_queries = st.fixed_dictionaries(
    {
        "as_of_ns": st.one_of(st.just(NOW_NS), times_ns),
        "freshness_ns": st.sampled_from([1, 60, 604_800]).map(lambda seconds: seconds * SECOND_NS),
        "measurement": st.sampled_from([None, "link", "satellite", "weather"]),
    }
)


@st.composite
def series_queries(draw: st.DrawFn) -> dict:
    """Raw and aggregated reads within one hour of the data."""
    start_ns = draw(st.integers(-60, 3500)) * SECOND_NS + BASE_NS
    interval = draw(st.sampled_from([None, "15s", "1m", "1h"]))
    query = {
        "entity_ids": draw(st.lists(st.sampled_from([*ENTITIES, "ghost"]), min_size=1, max_size=6)),
        "start_ns": start_ns,
        "end_ns": start_ns + draw(st.integers(1, 3600)) * SECOND_NS,
        "measurement": draw(st.sampled_from(["link", "satellite", "weather"])),
        "fields": draw(st.sampled_from([None, ["snr_db"], ["up", "count", "ghost"]])),
        "interval": interval,
        "agg": draw(st.sampled_from([None, "mean", "min", "max", "last"])) if interval else None,
    }
    if interval is None:
        query["point_budget"] = draw(st.sampled_from([16, 10_000]))
    return query
