"""Counters of the whole service in shared memory, and their text for Prometheus."""

from fleetcast.metrics.counters import Counters, Histogram, label
from fleetcast.metrics.exposition import exposition, sample
from fleetcast.metrics.shared import KEYED_REST, Shared, make_shared_memory
from fleetcast.metrics.surfaces import (
    REFUSED,
    AccountRequests,
    EngineAccounting,
    Requests,
    Writes,
    engine_accounting,
)
from fleetcast.metrics.totals import Totals

__all__ = [
    "KEYED_REST",
    "REFUSED",
    "AccountRequests",
    "Counters",
    "EngineAccounting",
    "Histogram",
    "Requests",
    "Shared",
    "Totals",
    "Writes",
    "engine_accounting",
    "exposition",
    "label",
    "make_shared_memory",
    "sample",
]
