"""The gunicorn worker: the front in Rust for the sockets, threads for complete requests.

gunicorn's threaded worker lets four half-sent requests hold four threads for ever, and answers
malformed heads in HTML. Here a connection that is still sending costs only a socket.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from gunicorn.workers.base import Worker

from fleetcast.engine import Front
from fleetcast.http.server.exchange import Exchange
from fleetcast.http.server.thread_progress import ThreadProgress
from fleetcast.http.server.whole_answer import failed, malformed
from fleetcast.malloc import keep_large_buffers

if TYPE_CHECKING:
    from gunicorn.config import Config

    from fleetcast.engine import FrontRequest

_BEAT_SECONDS = 0.5  # gunicorn wants a sign of life every thirty seconds

logger = logging.getLogger(__name__)


class FrontWorker(Worker):  # type: ignore[misc] # gunicorn has no types
    """Serves the application of an `HttpServer`, which also gives the `ConnectionLimits`."""

    alive: bool
    # gunicorn gives these signals the default action before it sets its own; others stay ignored.
    SIGNALS = (signal.SIGABRT, signal.SIGQUIT, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)

    @classmethod
    def check_config(cls, cfg: Config, log: Any) -> None:  # noqa: ANN401, ARG003 - gunicorn's
        """Raises `RuntimeError` for settings that this worker would silently ignore."""
        if cfg.is_ssl:
            message = "the HTTP listener speaks plain HTTP; let a proxy end TLS"
            raise RuntimeError(message)

    def init_process(self) -> None:
        """Runs in the child, after the fork."""
        keep_large_buffers()
        super().init_process()

    def run(self) -> None:
        """Serves until told to stop; requests under way are finished before it returns."""
        address = self.sockets[0].getsockname()
        self._front = Front(
            [listener.fileno() for listener in self.sockets],
            threads=self.cfg.threads,
            processes=self.cfg.workers,
            limits=self.app.limits(),
            key_fields=list(self.app.key_fields),
            server=address[:2] if isinstance(address, tuple) else (address, 0),
            settings=self.app.settings_descriptor,
            serving=self.app.data_path,
        )
        self._front.watch(self.PIPE[0])
        self._progress = ThreadProgress(time.monotonic())
        self._threads = [
            threading.Thread(target=self._work, name=f"http-{number}", daemon=True)
            for number in range(self._front.threads_max)
        ]
        for thread in self._threads:
            thread.start()
        try:
            beat_at = 0.0
            while self.alive:
                self._turn()
                now = time.monotonic()
                if now >= beat_at:
                    beat_at = now + _BEAT_SECONDS
                    self._beat()
            self._finish()
        finally:
            self._front.close()
            self.app.close()

    def _turn(self) -> None:
        self._front.set_limits(self.app.limits())
        for message in self._front.turn(_BEAT_SECONDS):
            logger.error("a connection failed: %s", message)

    def _beat(self) -> None:
        connections, waiting, unsent_bytes, taken = self._front.held()
        self.app.observe(connections, waiting, unsent_bytes)
        if not self._progress.is_stuck(waiting, taken, time.monotonic()):
            self.notify()
        if os.getppid() != self.ppid:
            self.alive = False

    def _finish(self) -> None:
        self._front.stop_accepting()
        for listener in self.sockets:
            listener.close()
        until = time.monotonic() + self.cfg.graceful_timeout
        while self._front.held()[0] and time.monotonic() < until:
            self.notify()
            self._turn()
        self._front.end_threads()
        for thread in self._threads:
            thread.join(timeout=max(until - time.monotonic(), 0.0))

    def _work(self) -> None:
        request: FrontRequest | None = None
        while True:
            try:
                request = self._front.next_request(request)
                if request is None:
                    return
                self._serve(request)
            except Exception:
                logger.exception("a connection failed")

    def _serve(self, request: FrontRequest) -> None:
        code = request.malformed
        if code is not None:
            answer = malformed(code)
            self.app.malformed(request.peer_address, answer)
            request.refuse(bytes(answer))
            return
        try:
            exchange = Exchange(self.wsgi, request.environ())
            if exchange.wants_body:
                if request.await_body():
                    return
                exchange = Exchange(self.wsgi, request.environ())
            body = exchange.chunks if exchange.long is None else exchange.long
            request.answer(exchange.status, exchange.fields, body)
        except BaseException:  # a panic of the engine is no Exception; it must not end the thread
            answer = failed()
            logger.exception("the application failed", extra={"request_id": answer.request_id})
            request.refuse(bytes(answer))
