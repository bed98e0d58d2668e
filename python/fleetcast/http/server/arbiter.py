"""gunicorn, started from code: its settings, and the application that each worker opens."""

from __future__ import annotations

import signal
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from gunicorn import sock
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from wsgiref.types import WSGIApplication

    from fleetcast.engine import Serving
    from fleetcast.http.server.limits import ConnectionLimits
    from fleetcast.http.server.whole_answer import WholeAnswer

    Opened = Callable[[], AbstractContextManager[WSGIApplication]]

_REAP_SECONDS = 0.1
_STOOD_STILL_SECONDS = 5.0  # gunicorn looks once a second
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a heartbeat file, unlinked as soon as it is made

_SETTINGS: Mapping[str, object] = {
    "worker_class": "fleetcast.http.server.worker.FrontWorker",
    "preload_app": False,  # stores do not survive a fork
    "control_socket_disable": True,
    "graceful_timeout": 30,
    "timeout": 30,
    "loglevel": "warning",
    "worker_tmp_dir": _SHARED_MEMORY if Path(_SHARED_MEMORY).is_dir() else None,
}


def _ignore(*_values: object) -> None:
    pass


class _Arbiter(Arbiter):  # type: ignore[misc] # gunicorn has no types
    """gunicorn's arbiter, which also reports a sign of life each time it looks for dead workers.

    The arbiter acts only on the signals that stop it. gunicorn would replace all workers at a
    SIGHUP, and start a second arbiter at a SIGUSR2.
    """

    SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
    LISTENERS: Sequence[object]
    WORKERS: Mapping[int, object]

    def __init__(self, app: HttpServer, lives: Callable[[], None]) -> None:
        self._lives = lives
        self._looked_at = time.monotonic()
        super().__init__(app)

    def murder_workers(self) -> None:
        """Ends the workers that gave no sign of life. gunicorn calls it once a second.

        If this process stood still for longer, its workers probably stood still too, as in a
        container that was paused. The workers then have until the next look.
        """
        self._lives()
        looked_at, self._looked_at = self._looked_at, time.monotonic()
        if self._looked_at - looked_at < _STOOD_STILL_SECONDS:
            super().murder_workers()

    def stop(self, graceful: bool = True) -> None:  # noqa: FBT001, FBT002 - gunicorn's
        """Ends all workers. Waits by a clock that cannot step, unlike gunicorn's method."""
        sock.close_sockets(self.LISTENERS, unlink=False)
        self.LISTENERS = []
        self.kill_workers(signal.SIGTERM if graceful else signal.SIGQUIT)
        until = time.monotonic() + self.cfg.graceful_timeout
        while self.WORKERS and time.monotonic() < until:
            self.reap_workers()
            time.sleep(_REAP_SECONDS)
        self.kill_workers(signal.SIGKILL)
        self.reap_workers()


class HttpServer(BaseApplication):  # type: ignore[misc] # gunicorn has no types
    """An HTTP service: `run` is gunicorn's arbiter and returns when all its workers have ended.

    - `serving` is entered in every worker after the fork and left when the worker stops. It gives
    the WSGI application.
    - `limits` returns the limits for the next request.
    - `key_fields` are the header fields that may hold a key. The first of them that a request has
    decides whose share the request counts against.
    - `settings_descriptor` is the memory whose first word changes when the settings change.
    - `observe` gets the counts of open connections, of requests that wait for a thread, and of
    bytes of answers that wait for their clients.
    - `malformed` gets the address of each peer whose head is malformed, and the answer to it.
    - `data_path` makes the front decide about requests, and serve the requests of the data path.
    - `settings` are gunicorn's (`bind`, `workers`, `threads`, hooks such as `when_ready`) and
    override the settings above.
    - `lives` is called once a second by the loop that watches the workers.
    """

    def __init__(
        self,
        serving: Opened,
        *,
        limits: Callable[[], ConnectionLimits],
        settings: Mapping[str, object],
        key_fields: Sequence[str] = (),
        settings_descriptor: int | None = None,
        lives: Callable[[], None] = _ignore,
    ) -> None:
        self._lives = lives
        self.limits = limits
        self.key_fields = key_fields
        self.settings_descriptor = settings_descriptor
        self.data_path: Serving | None = None
        self.observe: Callable[[int, int, int], None] = _ignore
        self.malformed: Callable[[str, WholeAnswer], None] = _ignore
        self._serving = serving
        self._settings = {**_SETTINGS, **settings}
        self._opened = ExitStack()
        super().__init__()

    def run(self) -> None:
        """Returns when all workers have ended. Raises `SystemExit` for refused settings."""
        try:
            _Arbiter(self, self._lives).run()
        except RuntimeError as error:
            raise SystemExit(str(error)) from None

    def load_config(self) -> None:
        """Called by gunicorn."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> WSGIApplication:
        """Called by gunicorn in a worker."""
        return self._opened.enter_context(self._serving())

    def close(self) -> None:
        """Called in a worker when it has served its last request."""
        self._opened.close()
