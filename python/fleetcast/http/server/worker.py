"""The gunicorn worker: an event loop for the sockets, threads for complete requests.

gunicorn's threaded worker lets four half-sent requests hold four threads for ever and answers
malformed heads in HTML. Here a connection that is still sending costs a socket and nothing else.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from gunicorn.workers.base import Worker  # type: ignore[import-untyped]

from fleetcast.http.headers import new_request_id
from fleetcast.http.server.connection import Connection, Step
from fleetcast.http.server.exchange import Exchange, environ
from fleetcast.http.server.framing import ParserSettings, whole_answer
from fleetcast.http.server.loop import Loop
from fleetcast.http.server.request_queue import RequestQueue
from fleetcast.malloc import keep_large_buffers

if TYPE_CHECKING:
    from gunicorn.config import Config  # type: ignore[import-untyped]

_BEAT_SECONDS = 0.5  # gunicorn wants a sign of life every thirty

logger = logging.getLogger(__name__)


class LoopWorker(Worker):  # type: ignore[misc] # gunicorn has no types
    """Serves an `HttpServer`'s application; that is where its `ConnectionLimits` come from."""

    alive: bool

    @classmethod
    def check_config(cls, cfg: Config, log: Any) -> None:  # noqa: ANN401, ARG003 - gunicorn's
        """Raises `RuntimeError` for settings that this worker would silently ignore."""
        if cfg.is_ssl:
            message = "the HTTP listener speaks plain HTTP; let a proxy end TLS"
            raise RuntimeError(message)

    def init_process(self) -> None:
        """Runs in the child, after the fork."""
        keep_large_buffers()
        self._requests = RequestQueue(self.cfg.threads, self.app.limits)
        self._threads = [
            threading.Thread(target=self._work, name=f"http-{number}", daemon=True)
            for number in range(self._requests.threads_max)
        ]
        super().init_process()

    def run(self) -> None:
        """Serves until told to stop; requests under way are finished before it returns."""
        self._server = self.sockets[0].getsockname()[:2]
        self._loop = Loop(
            [listener.sock for listener in self.sockets],
            ParserSettings(self.cfg),
            self.app.limits,
            self._requests,
            self.app.malformed,
        )
        self._loop.watch(self.PIPE[0])
        for thread in self._threads:
            thread.start()
        try:
            beat_at = 0.0
            while self.alive:
                self._loop.turn()
                now = time.monotonic()
                if now >= beat_at:
                    beat_at = now + _BEAT_SECONDS
                    self._beat()
            self.alive = False
            self._finish()
        finally:
            self._loop.close()
            self.app.close()

    def _beat(self) -> None:
        self.notify()
        self.app.observe(len(self._loop), len(self._requests), self._requests.unsent_bytes)
        if os.getppid() != self.ppid:
            self.alive = False

    def _finish(self) -> None:
        self._loop.stop_accepting()
        until = time.monotonic() + self.cfg.graceful_timeout
        while len(self._loop) and time.monotonic() < until:
            self.notify()
            self._loop.turn()
        self._requests.close()
        for thread in self._threads:
            thread.join(timeout=max(until - time.monotonic(), 0.0))

    def _work(self) -> None:
        while (connection := self._requests.get()) is not None:
            step = Step.CLOSE
            try:
                step = self._serve(connection)
            except OSError:
                logger.debug("a client left before its answer")
            except Exception:
                logger.exception("a connection failed")
            self._requests.done(connection)
            self._loop.proceed(connection, step)
            del connection  # nothing is held while it waits

    def _serve(self, connection: Connection) -> Step:
        connection.take_body()
        request = connection.request
        assert request is not None  # noqa: S101 - only whole heads are queued
        try:
            exchange = self._asked(connection)
            if exchange.wants_body and self._requests.admit(connection):
                return connection.await_body(time.monotonic())
            if exchange.wants_body:
                connection.admitted = connection.over_share = True
                exchange = self._asked(connection)
            if connection.body_due:
                whole = not request.head.expects_continue  # else nobody knows whether it comes
            else:
                whole = not request.buffered or len(connection.body) == request.body_bytes
            keep = request.reusable and whole and self.alive
            parts = exchange.parts(keep=keep)
        except BaseException:  # a panic of the engine is no Exception, and must not end the thread
            request_id = new_request_id()
            logger.exception("the application failed", extra={"request_id": request_id})
            parts = [whole_answer("internal_error", request_id, request_id=request_id)]
            keep = False
        self._requests.note_size(connection, sum(map(len, parts)))
        step = connection.answer(parts, keep=keep, now=time.monotonic())
        self._requests.hold_unsent(connection)
        return step

    def _asked(self, connection: Connection) -> Exchange:
        claim = partial(self._requests.claim, connection)
        return Exchange(self.wsgi, environ(connection, self._server, claim))
