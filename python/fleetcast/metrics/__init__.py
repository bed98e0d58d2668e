"""Counters of the whole service in shared memory, and their text for Prometheus."""

from fleetcast.metrics.counters import Counters, Histogram, label
from fleetcast.metrics.exposition import exposition, sample
from fleetcast.metrics.shared import Shared, make_shared_memory
from fleetcast.metrics.surfaces import AccountRequests, Books, Requests, Writes, engine_books
from fleetcast.metrics.totals import Totals

__all__ = [
    "AccountRequests",
    "Books",
    "Counters",
    "Histogram",
    "Requests",
    "Shared",
    "Totals",
    "Writes",
    "engine_books",
    "exposition",
    "label",
    "make_shared_memory",
    "sample",
]
