"""Stores of a process that serves tenants: flushed, closed at rest, and asked about keys."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.accounts import KEY_PEPPER
from fleetcast.composition.closing import closing_unused
from fleetcast.composition.flushing import Flusher
from fleetcast.composition.shared_settings import Live
from fleetcast.engine import Authenticator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.composition.shared_settings import SharedSettings
    from fleetcast.installation.stores import Stores
    from fleetcast.metrics import Counters


@contextmanager
def serving_stores(
    stores: Stores, shared: SharedSettings, counters: Counters
) -> Iterator[Authenticator]:
    """Flushes the stores and closes stores at rest until the end of the block; then closes all.

    Gives the authenticator of the process.
    """
    environment = shared.read().service.environment
    ingest = Live(shared, lambda settings: settings.ingest)
    flusher = Flusher(stores.engine, ingest.current, counters)
    try:
        with flusher.running(), closing_unused(stores.engine):
            yield Authenticator(stores.control.records, KEY_PEPPER, environment)
    finally:
        stores.close()
