"""`fleetcast serve`: starts the processes of the service, keeps them running, and stops them."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
import uuid
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import structlog

from fleetcast.accounts import ControlStore
from fleetcast.composition.forecasting import provide_models
from fleetcast.composition.shared_settings import SharedSettings
from fleetcast.config import SETTINGS_FILE
from fleetcast.errors import OperatorError
from fleetcast.logs import configure_logs
from fleetcast.metrics import Counters, Shared, make_shared_memory, sample
from fleetcast.security.master_key import load_master_key
from fleetcast.supervisor.background_jobs import Chores
from fleetcast.supervisor.child_configuration import ChildConfiguration
from fleetcast.supervisor.listening import bound_address, exclusive, listen, reserve
from fleetcast.supervisor.process import ChildSpec, Process
from fleetcast.supervisor.reloading import Reloading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_STOP_SECONDS = 45.0  # longer than any child takes to finish its requests
_WAKEUP_BYTES = 64
_LOOK_SECONDS = 1.0  # how late a changed settings file may be noticed
_OFF = "off"

logger = structlog.get_logger(__name__)


def serve(
    directory: DataDirectory, read: Callable[[], Settings], announce: Callable[[str], None]
) -> None:
    """Runs the service until it is told to stop; `announce` gets the line that says it is ready.

    `read` gives the settings, now and whenever they have to be read again. Raises
    `OperatorError`, `ControlStoreUnavailable` where it cannot start.
    """
    configure_logs("supervisor")
    reloading = Reloading(directory.root / SETTINGS_FILE, read)
    settings = reloading.settings
    master_key = load_master_key(directory.root, settings.security)
    with ExitStack() as stack:
        store = ControlStore(directory.control)
        stack.callback(store.close)
        store.verify_master_key(master_key)
        provide_models(directory.forecast)
        crashed = stack.enter_context(exclusive(directory.lock))
        signals = stack.enter_context(_Signals.caught())
        _raise_descriptor_limit()
        http = listen(settings.http.address, after_crash=crashed)
        grpc = _grpc(directory, settings, crashed=crashed)
        admin = None
        if settings.admin.address != _OFF:
            admin = listen(settings.admin.address, after_crash=crashed)
        # In the order in which they are stopped.
        table = [
            ChildSpec(
                name="http",
                module="fleetcast.supervisor.http_child",
                listener=http,
                processes=settings.http.workers,
            ),
            *grpc.children,
            ChildSpec(
                name="maintenance",
                module="fleetcast.supervisor.maintenance_child",
                listener=None,
                processes=1,
            ),
        ]
        if admin is not None:
            table.append(
                ChildSpec(
                    name="admin",
                    module="fleetcast.supervisor.admin_child",
                    listener=admin,
                    processes=1,
                )
            )
        ready = {
            "event": "ready",
            "http": f"http://{bound_address(http)}",
            "grpc": grpc.address,
            "grpc_ca": grpc.authority,
            "admin": None if admin is None else f"http://{bound_address(admin)}",
        }
        shared_settings = SharedSettings.create(settings)
        configuration = ChildConfiguration(
            data=directory.root,
            master_key=master_key,
            counters_fd=make_shared_memory(),
            settings_fd=shared_settings.descriptor,
            run=str(uuid.uuid4()),
        )
        counters = Counters(Shared(configuration.counters_fd))
        stack.enter_context(Chores(directory, store, counters.shared, configuration.run).running())
        processes: list[Process] = []
        try:
            processes.extend(Process(spec, configuration) for spec in table)
            if _all_ready(processes, signals):
                announce(json.dumps(ready, separators=(",", ":")))
                reload = partial(reloading.reload, shared_settings.publish)
                _keep_running(processes, signals, reloading, reload, counters)
        finally:
            _stop(processes, signals)


def _raise_descriptor_limit() -> None:
    """Lets every child have as many descriptors as the system grants; they inherit it.

    Connections and open stores are descriptors, and the usual soft limit of 1,024 is few of them.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class _Grpc(NamedTuple):
    """The rows of gRPC in the child table, and what the ready line says of it."""

    children: list[ChildSpec]
    address: str | None
    authority: str | None


def _grpc(directory: DataDirectory, settings: Settings, *, crashed: bool) -> _Grpc:
    """Raises `OperatorError` where the port is taken or the certificate is not there."""
    if settings.grpc.address == _OFF:
        return _Grpc([], None, None)
    authority = directory.grpc_authority(settings)
    count = settings.grpc.processes
    port = reserve(settings.grpc.address, shared=count > 1, after_crash=crashed)
    child = "fleetcast.supervisor.grpc_child"
    children = [
        ChildSpec(name="grpc", module=child, listener=port, processes=1) for _ in range(count)
    ]
    return _Grpc(children, str(bound_address(port)), None if authority is None else str(authority))


class _Signals:
    """Signals as something to wait for: a stop is remembered, a child's end only wakes."""

    def __init__(self, wakeup_fd: int) -> None:
        self.fd = wakeup_fd
        self.stops = 0
        self.reloads = 0

    @staticmethod
    @contextmanager
    def caught() -> Iterator[_Signals]:
        """Catches the signals, until the end of the block."""
        read_fd, write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signals = _Signals(read_fd)

        def stop(_number: int, _frame: object) -> None:
            signals.stops += 1

        def reload(_number: int, _frame: object) -> None:
            signals.reloads += 1

        handlers = {number: signal.signal(number, stop) for number in _STOP_SIGNALS}
        handlers[signal.SIGHUP] = signal.signal(signal.SIGHUP, reload)
        handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        before = signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
        try:
            yield signals
        finally:
            signal.set_wakeup_fd(before)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.close(read_fd)
            os.close(write_fd)

    def wait(self, seconds: float | None, *others: int) -> list[int]:
        """Waits for a signal or for one of the other descriptors, which it returns."""
        readable, _, _ = select.select([self.fd, *others], [], [], seconds)
        if self.fd in readable:
            os.read(self.fd, _WAKEUP_BYTES)
        return [descriptor for descriptor in readable if descriptor != self.fd]


def _all_ready(processes: list[Process], signals: _Signals) -> bool:
    """Waits until everything serves; false where a stop came first. Raises `OperatorError`."""
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
    signals: _Signals,
    reloading: Reloading,
    reload: Callable[[], None],
    counters: Counters,
) -> None:
    reloads = 0
    failures = {
        name: counters.gauge(sample("fleetcast_child_failures", child=name))
        for name in {process.spec.name for process in processes}
    }
    while not signals.stops:
        if signals.reloads != reloads or reloading.due():
            reloads = signals.reloads
            reload()
        now = time.monotonic()
        for process in processes:
            if process.restart_at is not None and process.restart_at <= now:
                process.restart()
            process.ended()
        for name, gauge in failures.items():
            mine = (process.failures for process in processes if process.spec.name == name)
            counters.put(gauge, sum(mine))
        due = [each.restart_at for each in processes if each.restart_at is not None]
        signals.wait(min(max(min(due, default=now + _LOOK_SECONDS) - now, 0.0), _LOOK_SECONDS))


def _stop(processes: list[Process], signals: _Signals) -> None:
    """Stops one after the other; a second signal, or a child that takes too long, kills."""
    kill_at = signals.stops + 1
    for process in processes:
        process.stop()
        until = time.monotonic() + _STOP_SECONDS
        while not process.gone():
            left = until - time.monotonic()
            if left <= 0 or signals.stops >= kill_at:
                logger.error("child is killed", child=process.spec.name)
                process.kill()
            signals.wait(max(left, 0.1))
