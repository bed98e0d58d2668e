"""A listener that serves HTTP: gunicorn's arbiter, and the application of each worker."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.composition.http_parts import Opening
from fleetcast.composition.shared_settings import Live, SharedSettings
from fleetcast.engine import Serving
from fleetcast.http.malformed import malformed_requests
from fleetcast.http.server.arbiter import HttpServer
from fleetcast.http.server.limits import ConnectionLimits
from fleetcast.installation.backend import stores_of
from fleetcast.metrics import Counters, Requests, Shared, Writes, engine_accounting, sample
from fleetcast.supervisor.child import begin, gunicorn_settings, report_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from fleetcast.composition.http_parts import HttpParts
    from fleetcast.config import Settings


class HttpListener(NamedTuple):
    """Everything that differs between HTTP listeners."""

    process: str
    """The name of the process in logs and metrics."""
    opened: Callable[[Opening], AbstractContextManager[Live[HttpParts]]]
    body_bytes_max: Callable[[Settings], int]
    sizes: Callable[[Settings], tuple[int, int]]
    """Returns the number of workers, and of threads of each worker."""
    key_fields: Sequence[str]
    """Header fields that may hold a key. The first of them that a request has decides."""
    takes_chunks: bool = False

    def limits(self, settings: Settings) -> ConnectionLimits:
        """Returns the limits of connections in force."""
        return ConnectionLimits(
            body_bytes_max=self.body_bytes_max(settings),
            read_deadline_seconds=settings.http.read_deadline_seconds,
            request_deadline_seconds=settings.http.request_deadline_seconds,
            takes_chunks=self.takes_chunks,
        )


def serve_http(listener: HttpListener) -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    configuration = begin(listener.process)
    shared_settings = SharedSettings(configuration.settings_fd)

    @contextmanager
    def serving() -> Iterator[WSGIApplication]:
        counters = Counters(Shared(configuration.counters_fd))
        ready = counters.gauge(sample("fleetcast_processes_ready", surface=listener.process))
        server.observe = _observer(counters)
        directory, settings = configuration.directory, shared_settings.read()
        stores = stores_of(directory, settings, configuration.master_key, follow=True)
        opening = Opening(
            directory=directory,
            stores=stores,
            settings=shared_settings,
            counters=counters,
            run=configuration.run,
        )
        server.malformed = malformed_requests(counters, listener.process)
        with listener.opened(opening) as served:
            server.data_path = _serving(served, counters.shared, listener.process)
            counters.put(ready, 1)
            yield _current(served)
            counters.put(ready, 0)

    workers, threads = listener.sizes(shared_settings.read())
    server = HttpServer(
        serving,
        limits=Live(shared_settings, listener.limits).current,
        settings=gunicorn_settings(configuration, workers=workers, threads=threads),
        settings_descriptor=configuration.settings_fd,
        key_fields=listener.key_fields,
        lives=lambda: report_alive(configuration),
    )
    server.run()


def _serving(served: Live[HttpParts], shared: Shared, process: str) -> Serving:
    """Serves the data path by the settings in force."""
    counters = Counters(shared)  # a row for the engine, which adds without our lock
    requests, writes = Requests(counters, "http"), Writes(counters, process)
    answered = counters.counter("fleetcast_http_answered_by_front_total")
    accounting = engine_accounting(shared, process, requests, writes, answered)
    return Serving(lambda: served.current().service, accounting)


def _current(served: Live[HttpParts]) -> WSGIApplication:
    """Serves each request by the application that is current when it begins."""

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return served.current().application(environ, start_response)

    return application


def _observer(counters: Counters) -> Callable[[int, int, int], None]:
    connections = counters.gauge(sample("fleetcast_http_connections"))
    queue = counters.gauge(sample("fleetcast_http_queue_length"))
    unsent = counters.gauge(sample("fleetcast_http_unsent_bytes"))

    def observe(open_connections: int, queued: int, unsent_bytes: int) -> None:
        counters.put(connections, open_connections)
        counters.put(queue, queued)
        counters.put(unsent, unsent_bytes)

    return observe
