"""A child process of the supervisor: started, watched, restarted, stopped."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from fleetcast.supervisor.child import READY
from fleetcast.supervisor.listening import end_listening

if TYPE_CHECKING:
    from fleetcast.supervisor.child_configuration import ChildConfiguration
    from fleetcast.supervisor.child_table import ChildSpec

_BACKOFF_FIRST_SECONDS = 0.1
_BACKOFF_MAX_SECONDS = 10.0
_DOUBLINGS_MAX = 7  # reach the longest delay; a power without a bound would overflow within hours
_SIGN_BYTES = 4_096
_START_SECONDS = 300.0  # without a sign of life; a start takes 1 s, and more on a slow disk
_STEADY_SECONDS = 30.0  # a child that lived so long has its first backoff again

logger = logging.getLogger(__name__)


def backoff_seconds(failures: int) -> float:
    """Returns the delay of a restart after so many failures in a row.

    Example: 0.1, 0.2 and 0.4 s after 0, 1 and 2 failures, and 10 s at most.
    """
    doublings = 2.0 ** min(failures, _DOUBLINGS_MAX)
    return min(_BACKOFF_FIRST_SECONDS * doublings, _BACKOFF_MAX_SECONDS)


class Process:
    """A child that is kept running; `restart_at` is set from its end to its restart."""

    def __init__(self, spec: ChildSpec, configuration: ChildConfiguration) -> None:
        self.spec = spec
        self.restart_at: float | None = None
        self.silent_seconds = -_START_SECONDS
        """Seconds since the last sign of life; below 0 while the child may still start."""
        self._configuration = configuration
        self._failures = 0
        self._to_be_ready = spec.processes
        self._start()

    @property
    def ready(self) -> bool:
        """Returns true once all processes of the child have served since the first start."""
        return self._to_be_ready <= 0

    @property
    def failures(self) -> int:
        """Number of times in a row that the child soon ended by itself; 0 once it runs steadily."""
        running = self.restart_at is None and self._popen.poll() is None
        steady = running and time.monotonic() - self._started >= _STEADY_SECONDS
        return 0 if steady else self._failures

    @property
    def ready_fd(self) -> int:
        """Readable when `take_readiness` has bytes to read."""
        return self._ready_fd

    def take_readiness(self) -> bool:
        """Counts processes that have become ready. Returns false if the child has ended."""
        arrived = os.read(self._ready_fd, _SIGN_BYTES)
        self._to_be_ready -= arrived.count(READY)
        self.silent_seconds = 0.0
        return bool(arrived)

    def look(self, seconds: float) -> None:
        """Takes signs of life. Without a sign the child has been silent for `seconds` more.

        Only seconds in which the supervisor looked count. So a machine that was suspended does not
        find all its children silent.
        """
        if self.restart_at is not None:
            return
        with contextlib.suppress(BlockingIOError):
            if os.read(self._ready_fd, _SIGN_BYTES):
                self.silent_seconds = 0.0
                return
        self.silent_seconds += seconds

    def note_end(self) -> None:
        """Sets `restart_at` if the child has ended by itself."""
        if self.restart_at is not None or self._popen.poll() is None:
            return
        if time.monotonic() - self._started >= _STEADY_SECONDS:
            self._failures = 0
        self._let_go()
        self._put_off("child ended", status=self._popen.returncode)

    def restart(self) -> None:
        """Starts the child again, or later if the system does not start it now.

        Example: no descriptors or no memory are left, or an upgrade replaces the interpreter.
        """
        self.restart_at = None
        try:
            self._start()
        except OSError as error:
            self._put_off("child not started", problem=str(error))

    def stop(self) -> None:
        """Asks the child to finish its requests and end. The child gets no more connections."""
        self._signal(signal.SIGTERM)
        if self.spec.listener is not None:
            end_listening(self.spec.listener)

    def kill(self) -> None:
        """Ends the child and all its processes at once."""
        self._signal(signal.SIGKILL)

    def gone(self) -> bool:
        """Returns true if the child has ended, by itself or on request."""
        return self._popen.poll() is not None

    def _put_off(self, event: str, **details: object) -> None:
        delay = backoff_seconds(self._failures)
        self._failures += 1
        self.restart_at = time.monotonic() + delay
        logger.error(event, extra={"child": self.spec.name, "restart_in_seconds": delay, **details})

    def _start(self) -> None:
        self._ready_fd, ready_fd = os.pipe()
        try:
            self._start_reporting_to(ready_fd)
        except OSError:
            os.close(self._ready_fd)
            raise
        finally:
            os.close(ready_fd)

    def _start_reporting_to(self, ready_fd: int) -> None:
        os.set_blocking(self._ready_fd, False)
        self.silent_seconds = -_START_SECONDS
        listener = self.spec.listener
        configuration = replace(
            self._configuration,
            listener_fd=None if listener is None else listener.fileno(),
            ready_fd=ready_fd,
        )
        self._started = time.monotonic()
        # A process group for the child has two uses. Ctrl-C in a terminal reaches only the
        # supervisor, and a child that outlives the supervisor can end all its processes at once.
        self._popen = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", self.spec.module],
            stdin=subprocess.PIPE,
            pass_fds=configuration.descriptors,
            env={**self.spec.environment, **os.environ},
            process_group=0,
        )
        assert self._popen.stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(BrokenPipeError):
            self._popen.stdin.write(configuration.encode())
            self._popen.stdin.flush()

    def _let_go(self) -> None:
        os.close(self._ready_fd)
        assert self._popen.stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(BrokenPipeError):
            self._popen.stdin.close()

    def _signal(self, number: signal.Signals) -> None:
        if self._popen.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(self._popen.pid, number)
            else:
                self._popen.send_signal(number)
