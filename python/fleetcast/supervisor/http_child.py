"""The HTTP processes: gunicorn's arbiter, started by the supervisor, and its workers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.composition.services import http_application
from fleetcast.composition.shared_settings import Live, SharedSettings
from fleetcast.engine import Admissions
from fleetcast.http.malformed import MalformedRequests
from fleetcast.http.pipeline import DECIDING_FIELDS
from fleetcast.http.server.arbiter import HttpServer
from fleetcast.http.server.limits import ConnectionLimits
from fleetcast.lmdb_store import DATA_FILE
from fleetcast.log_lines import write_served
from fleetcast.metrics import Counters, Shared, sample
from fleetcast.metrics.families import BUCKETS_SECONDS
from fleetcast.supervisor.child import begin, gunicorn_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from wsgiref.types import WSGIApplication

    from fleetcast.config import Settings


def main() -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    configuration = begin("http")
    shared_settings = SharedSettings(configuration.settings_fd)

    @contextmanager
    def serving() -> Iterator[WSGIApplication]:
        counters = Counters(Shared(configuration.counters_fd))
        front_counters = Counters(counters.shared)  # a row of its own: it adds without our lock
        ready = counters.gauge(sample("fleetcast_processes_ready", surface="http"))
        connections = counters.gauge(sample("fleetcast_http_connections"))
        queue = counters.gauge(sample("fleetcast_http_queue_length"))
        unsent = counters.gauge(sample("fleetcast_http_unsent_bytes"))

        def observe(open_connections: int, queued: int, unsent_bytes: int) -> None:
            counters.put(connections, open_connections)
            counters.put(queue, queued)
            counters.put(unsent, unsent_bytes)

        server.observe = observe
        server.admissions = Admissions(
            DECIDING_FIELDS,
            control_store=str(configuration.directory.control / DATA_FILE),
            counters=counters.shared.descriptor,
            counters_bytes=counters.shared.rows_bytes,
            bounds_seconds=BUCKETS_SECONDS,
            remembered=front_counters.counter("fleetcast_http_remembered_total"),
        )
        server.malformed = MalformedRequests(counters, write_served).note
        with http_application(
            configuration.directory,
            configuration.master_key,
            shared_settings,
            counters,
            front_counters,
            configuration.run,
        ) as application:
            counters.put(ready, 1)
            yield application
            counters.put(ready, 0)

    http = shared_settings.read().http
    server = HttpServer(
        serving,
        limits=Live(shared_settings, _limits).current,
        settings=gunicorn_settings(configuration, workers=http.workers, threads=http.threads),
        settings_descriptor=configuration.settings_fd,
    )
    server.run()


def _limits(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        body_bytes_max=settings.limits.body_bytes_max,
        read_deadline_seconds=settings.http.read_deadline_seconds,
        request_deadline_seconds=settings.http.request_deadline_seconds,
    )


if __name__ == "__main__":
    main()
