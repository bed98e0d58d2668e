"""Calls that every child makes: it begins, reports when it serves, and ends with its supervisor.

A child's standard input is a pipe whose other end only the supervisor holds. Its first and only
line is the `ChildConfiguration`. The end of the pipe means that the supervisor is gone, however it
ended. A child writes a byte to `ready_fd` for each of its processes that serves. From then on its
working loop writes a byte each second. The supervisor replaces a child that is silent.
"""

from __future__ import annotations

import ctypes
import logging
import os
import select
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from fleetcast.logs import configure_logs, logging_config
from fleetcast.supervisor.child_configuration import STDIN, read_configuration

if TYPE_CHECKING:
    from fleetcast.supervisor.child_configuration import ChildConfiguration

READY, ALIVE = b"1", b"."
_ORPHAN_GRACE_SECONDS = 5.0  # children have 10 s to end after the supervisor, even on a slow disk
_IGNORED_SIGNALS = (
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTTIN,
    signal.SIGTTOU,
)
_PR_SET_PDEATHSIG = 1  # prctl(2), linux/prctl.h


def begin(process: str) -> ChildConfiguration:
    """Reads the configuration. From then on the process logs, and ends with its supervisor."""
    configuration = read_configuration()
    configure_logs(process)
    ignore_signals()
    end_with_supervisor()
    os.set_blocking(configuration.ready_fd, False)  # a hung supervisor must not stop the child
    return configuration


def ignore_signals() -> None:
    """Ignores signals that only the supervisor acts on (SIGHUP), and signals without a meaning."""
    for number in _IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def report_ready(configuration: ChildConfiguration) -> None:
    """Tells the supervisor that a process serves. The pipe has no reader after a restart."""
    try:
        os.write(configuration.ready_fd, READY)
    except OSError:
        logging.getLogger(__name__).debug("nobody waits for readiness")


def report_alive(configuration: ChildConfiguration) -> None:
    """Tells the supervisor that the calling loop goes on. Call it once a second."""
    with suppress(OSError):
        os.write(configuration.ready_fd, ALIVE)


def gunicorn_settings(
    configuration: ChildConfiguration, *, workers: int, threads: int
) -> dict[str, object]:
    """Gunicorn's settings in a child that serves HTTP."""
    return {
        "bind": f"fd://{configuration.listener_fd}",
        "workers": workers,
        "threads": threads,
        "logconfig_dict": logging_config(),
        "post_fork": lambda _arbiter, _worker: end_with_supervisor(),
        "post_worker_init": lambda _worker: report_ready(configuration),
    }


def end_with_supervisor() -> None:
    """Makes this process stop gracefully when the supervisor is gone, and end in any case.

    Neither threads nor the death signal survive a fork: call it in every process.
    """
    # A process that was stopped by a signal could not watch. At its parent's death the kernel lets
    # it go on. Without this call the kernel does so only for groups that had stopped before they
    # were orphaned.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)
    threading.Thread(target=_watch, name="lifeline", daemon=True).start()


def _watch() -> None:
    poller = select.poll()
    poller.register(STDIN, 0)  # a hang-up is reported unasked
    poller.poll()
    os.kill(os.getpid(), signal.SIGTERM)
    # The time is long enough to finish requests that have begun. Then the whole group ends.
    select.select([], [], [], _ORPHAN_GRACE_SECONDS)
    os.killpg(0, signal.SIGKILL)
