"""Counters of the service as the console names them: by tenant, and by code."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from fleetcast.metrics import KEYED_REST, REFUSED, Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleetcast.metrics import Shared

_RECORDS = re.compile(
    r'fleetcast_(?:records_(accepted|rejected)|(unreadable)_records)_total\{tenant="([^"]*)"'
)
_REFUSED = re.compile(r'fleetcast_([a-z]+)_refused_total\{code="([^"]*)"')
_REFUSED_KEY = re.compile(f"{REFUSED}(.*)|({KEYED_REST})")
_SURFACES = ("http", "grpc")
_NAMES_KEPT = 100_000  # a series of each tenant, transport and outcome


def record_counts(shared: Shared) -> Callable[[], Mapping[str, int]]:
    """Counts records of all transports, as `accepted TENANT`, `rejected …` and `unreadable …`."""
    totals = [Totals(shared, f"fleetcast_{name}_") for name in ("records", "unreadable_records")]
    return _counts(_RECORDS, totals)


def refusal_counts(shared: Shared) -> Callable[[], Mapping[str, int]]:
    """Counts refused requests and calls, as `SURFACE CODE`. Example: `http rate_limited`."""
    return _counts(
        _REFUSED, [Totals(shared, f"fleetcast_{surface}_refused_total") for surface in _SURFACES]
    )


def refused_key_counts(shared: Shared) -> Callable[[], Mapping[str, int]]:
    """Counts refusals of known keys, as `SURFACE CODE TENANT KEY`, and `KEYED_REST` for the rest.

    Example: `http insufficient_scope acme uwqpcooqs74v`.
    """
    return _counts(_REFUSED_KEY, [Totals(shared, REFUSED), Totals(shared, KEYED_REST)])


def of_all_tenants(counts: Callable[[], Mapping[str, int]]) -> Callable[[], Mapping[str, int]]:
    """Sums counts of `record_counts` over all tenants, as `accepted`, `rejected`, `unreadable`."""

    def sums() -> Mapping[str, int]:
        summed: Counter[str] = Counter(accepted=0, rejected=0)
        for name, count in counts().items():
            summed[name.partition(" ")[0]] += count
        return summed

    return sums


def _counts(pattern: re.Pattern[str], totals: list[Totals]) -> Callable[[], Mapping[str, int]]:
    @lru_cache(_NAMES_KEPT)
    def key_of(name: str) -> str | None:
        found = pattern.match(name)
        return None if found is None else " ".join(filter(None, found.groups()))

    def counts() -> Mapping[str, int]:
        summed: Counter[str] = Counter()
        for each in totals:
            for name, count in each.all().items():
                key = key_of(name)
                if key is not None:
                    summed[key] += count
        return summed

    return counts
