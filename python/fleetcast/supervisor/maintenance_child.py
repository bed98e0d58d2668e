"""The maintenance process, started by the supervisor."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial

from fleetcast.composition.background import repeating
from fleetcast.composition.closing import closing_unused
from fleetcast.composition.shared_settings import Live, SharedSettings
from fleetcast.installation.backend import stores_of
from fleetcast.maintenance.crash_notes import CrashNotes
from fleetcast.maintenance.housekeeping import Housekeeping
from fleetcast.maintenance.node_upkeep import node_upkeep
from fleetcast.maintenance.stores import Maintenance
from fleetcast.metrics import AccountRequests, Counters, Shared, sample
from fleetcast.supervisor.child import begin, report_alive, report_ready

_ROUND_SECONDS = 1.0
_USAGE_SECONDS = 1.0
_LOOKING_SHARE = 0.02  # of a core, for checking if upkeep is due
_NICENESS = 10  # requests go first


def main() -> None:
    """Maintains until SIGTERM, or until the supervisor is gone; finishes upkeep under way."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stopped.set())
    configuration = begin("maintenance")
    os.nice(_NICENESS)
    directory = configuration.directory
    counters = Counters(Shared(configuration.counters_fd))
    shared_settings = SharedSettings(configuration.settings_fd)
    stores = stores_of(directory, shared_settings.read(), configuration.master_key, follow=True)
    store, engine = stores.control, stores.engine
    live = Live(shared_settings, lambda settings: settings.store.compact_after_seconds)
    crash_notes = CrashNotes(directory.upkeep)
    maintenance = Maintenance(
        store, engine, counters, live.current, crash_notes, prefers=stores.prefers
    )
    lives = partial(report_alive, configuration)
    forecast = Live(shared_settings, lambda settings: settings.forecast)
    housekeeping = Housekeeping(stores.predictions, forecast.current, store, engine, counters)
    usage = stores.usage(AccountRequests(counters.shared), configuration.run)
    serving = counters.gauge(sample("fleetcast_processes_ready", surface="maintenance"))
    counters.put(serving, 1)
    report_ready(configuration)
    try:
        with (
            closing_unused(engine),
            housekeeping.running(),
            node_upkeep(stores, counters),
            # The supervisor reads no file of the control store: a file that is cut while it is read
            # ends the process, and the end of the supervisor is the end of the service.
            repeating("usage", usage.flush, _USAGE_SECONDS, "usage is not stored", at_end=True),
        ):
            due_at = 0.0
            while not stopped.is_set():
                lives()
                if time.monotonic() >= due_at:
                    began = time.thread_time()
                    maintenance.begin_due(lives)
                    pause_seconds = (time.thread_time() - began) / _LOOKING_SHARE
                    due_at = time.monotonic() + pause_seconds
                stopped.wait(_ROUND_SECONDS)
    finally:
        maintenance.close()
        stores.close()


if __name__ == "__main__":
    main()
