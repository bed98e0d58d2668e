"""`fleetcast serve`: starts the processes of the service, keeps them running, and stops them."""

from __future__ import annotations

import json
import logging
import os
import resource
import time
import uuid
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import TYPE_CHECKING

from fleetcast.composition.background import repeating
from fleetcast.composition.shared_settings import SharedSettings
from fleetcast.config import SETTINGS_FILE
from fleetcast.engine import VERSION
from fleetcast.errors import OperatorError
from fleetcast.installation.backend import stores_of
from fleetcast.installation.forecasts import lacks_models
from fleetcast.installation.lock import exclusive
from fleetcast.logs import configure_logs
from fleetcast.metrics import Counters, Shared, make_shared_memory
from fleetcast.security.master_key import load_master_key, refuse_exposed_key
from fleetcast.supervisor.child_configuration import ChildConfiguration
from fleetcast.supervisor.child_table import child_table
from fleetcast.supervisor.inherited_sockets import take_inherited
from fleetcast.supervisor.models_child import provide_models_apart
from fleetcast.supervisor.notices import Notices
from fleetcast.supervisor.process import Process
from fleetcast.supervisor.reloading import Reloading
from fleetcast.supervisor.signals import Signals
from fleetcast.supervisor.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.lock import HeldLock
    from fleetcast.installation.stores import Stores

_STOP_SECONDS = 45.0  # longer than any child takes to finish its requests
_FOLLOW_SECONDS, _FOLLOW_PATIENCE_SECONDS = 1.0, 10.0
_ADDRESSES = ("http", "grpc", "grpc_ca", "admin", "adapters")
_LOOK_SECONDS = 1.0  # how late a changed settings file may be noticed

logger = logging.getLogger(__name__)


def serve(
    directory: DataDirectory, read: Callable[[], Settings], announce: Callable[[str], None]
) -> None:
    """Runs the service until it is told to stop; `announce` gets the line that says it is ready.

    `read` returns the settings, at the start and at each reload. Raises `OperatorError`,
    `ControlStoreUnavailable` if the service cannot start.
    """
    configure_logs("supervisor")
    notices, inherited = Notices(os.environ), take_inherited(os.environ)
    reloading = Reloading(directory.root / SETTINGS_FILE, read)
    settings = reloading.settings
    refuse_exposed_key(directory.root, settings.security)
    master_key = load_master_key(directory.root, settings.security)
    with ExitStack() as stack:
        stores = stack.enter_context(closing(stores_of(directory, settings, master_key)))
        stores.prepare()
        lock = stack.enter_context(exclusive(directory.lock))
        stores.take_node_id()
        state = _State(lock)
        signals = stack.enter_context(Signals.caught())
        _raise_descriptor_limit()
        table = child_table(directory, settings, inherited, after_crash=lock.crashed)
        shared_settings = SharedSettings.create(settings)
        configuration = ChildConfiguration(
            directory=directory,
            master_key=master_key,
            counters_fd=make_shared_memory(),
            settings_fd=shared_settings.descriptor,
            run=str(uuid.uuid4()),
        )
        _finish_with(stores, configuration)
        counters = Counters(Shared(configuration.counters_fd))
        stack.enter_context(_repeating_audit_lines(stores))
        processes: list[Process] = []
        try:
            processes.extend(Process(spec, configuration) for spec in table.children)
            if _all_ready(processes, signals):
                state.enter("running", table.ready)
                announce(json.dumps(table.ready, separators=(",", ":")))
                notices.ready()
                reload = partial(reloading.reload, shared_settings.publish)
                watchdog = Watchdog(processes, counters, settings.service.watchdog_seconds)
                _keep_running(processes, signals, reloading.is_due, reload, watchdog, notices)
        finally:
            notices.stopping()
            state.enter("stopping", table.ready)
            _stop(processes, signals)


def _repeating_audit_lines(stores: Stores) -> AbstractContextManager[None]:
    """Repeats in this log the audit lines that commands wrote, and once more at the end.

    A thread does so, because a disk that hangs must not delay the restart of children.
    """
    return repeating(
        "audit",
        stores.follower().follow,
        _FOLLOW_SECONDS,
        "audit lines are not repeated",
        at_end=True,
        patience_seconds=_FOLLOW_PATIENCE_SECONDS,
    )


def _finish_with(stores: Stores, configuration: ChildConfiguration) -> None:
    """Releases the first models, and closes the files of the stores.

    A process that reads a mapped file ends if the file is cut at that moment.
    """
    if lacks_models(stores.predictions):
        provide_models_apart(configuration)
    if not stores.is_shared:
        stores.close()


class _State:
    """State of the service, which `fleetcast status` reads from the lock."""

    def __init__(self, lock: HeldLock) -> None:
        self._lock = lock
        self._start = {"since": time.time(), "version": VERSION}
        self.enter("starting", {})

    def enter(self, state: str, ready: Mapping[str, str | None]) -> None:
        """Writes the state to the lock. The service runs on if that fails."""
        addresses = {name: ready.get(name) for name in _ADDRESSES}
        with suppress(OSError):
            self._lock.note({"state": state, **self._start, **addresses})


def _raise_descriptor_limit() -> None:
    """Lets every child have as many descriptors as the system grants, because children inherit it.

    Connections and open stores are descriptors. The usual soft limit of 1,024 is too few.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _all_ready(processes: list[Process], signals: Signals) -> bool:
    """Waits until all children serve; false if a stop came first. Raises `OperatorError`."""
    while not signals.stops:
        waiting = {process.ready_fd: process for process in processes if not process.ready}
        if not waiting:
            return True
        for descriptor in signals.wait(None, *waiting):
            if not waiting[descriptor].take_readiness():
                message = f"{waiting[descriptor].spec.name} did not start: the log says why"
                raise OperatorError(message)
    return False


def _keep_running(
    processes: list[Process],
    signals: Signals,
    reload_is_due: Callable[[], bool],
    reload: Callable[[], None],
    watchdog: Watchdog,
    notices: Notices,
) -> None:
    """Restarts children that end and reloads settings that change, until a stop."""
    reloads = 0
    look_seconds = min(_LOOK_SECONDS, notices.alive_seconds or _LOOK_SECONDS)
    while not signals.stops:
        if signals.reloads != reloads or reload_is_due():
            reloads = signals.reloads
            with notices.reloading():
                reload()
        now = time.monotonic()
        for process in processes:
            if process.restart_at is not None and process.restart_at <= now:
                process.restart()
            process.note_end()
        if watchdog.look():
            notices.alive()
        due = [process.restart_at for process in processes if process.restart_at is not None]
        signals.wait(min(max(min(due, default=now + look_seconds) - now, 0.0), look_seconds))


def _stop(processes: list[Process], signals: Signals) -> None:
    """Stops the children in turn. A second signal, or a child that takes too long, kills."""
    kill_at = signals.stops + 1
    for process in processes:
        process.stop()
        until = time.monotonic() + _STOP_SECONDS
        while not process.gone():
            left = until - time.monotonic()
            if left <= 0 or signals.stops >= kill_at:
                logger.error("child is killed", extra={"child": process.spec.name})
                process.kill()
            signals.wait(max(left, 0.1))
