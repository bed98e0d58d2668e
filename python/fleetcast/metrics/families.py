"""All metrics: name, kind and meaning.

A new metric is a line here and a call at the counted event. A counter ends in `_total`. Histograms
and counters in `_seconds_total` are counted in nanoseconds and shown in seconds.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Metric(NamedTuple):
    """A metric and all its label sets."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str


FAMILIES = (
    Metric("fleetcast_http_requests_total", "counter", "HTTP requests answered."),
    Metric(
        "fleetcast_http_answered_by_front_total",
        "counter",
        "HTTP requests answered by the front, without the application, among the requests.",
    ),
    Metric("fleetcast_http_refused_total", "counter", "HTTP requests refused, by error code."),
    Metric("fleetcast_http_request_seconds", "histogram", "Time to answer an HTTP request."),
    Metric("fleetcast_http_requests_in_flight", "gauge", "HTTP requests being answered now."),
    Metric("fleetcast_http_connections", "gauge", "Open client connections."),
    Metric("fleetcast_http_queue_length", "gauge", "Requests that wait for a thread."),
    Metric("fleetcast_http_unsent_bytes", "gauge", "Bytes of answers that clients have not taken."),
    Metric("fleetcast_grpc_requests_total", "counter", "gRPC calls answered."),
    Metric("fleetcast_grpc_refused_total", "counter", "gRPC calls refused, by error code."),
    Metric("fleetcast_grpc_request_seconds", "histogram", "Time to answer a gRPC call."),
    Metric("fleetcast_grpc_requests_in_flight", "gauge", "gRPC calls being answered now."),
    Metric(
        "fleetcast_tenant_refused_total",
        "counter",
        "Requests and calls with a valid key refused, by tenant and error code.",
    ),
    Metric(
        "fleetcast_refused_over_share_total",
        "counter",
        "Requests and calls refused because their tenant held its share already.",
    ),
    Metric(
        "fleetcast_tenant_cpu_seconds_total",
        "counter",
        "CPU time that requests and calls of a tenant have used.",
    ),
    Metric("fleetcast_records_accepted_total", "counter", "Records accepted."),
    Metric("fleetcast_records_rejected_total", "counter", "Records rejected one by one."),
    Metric(
        "fleetcast_records_clamped_total",
        "counter",
        "Accepted records whose time lay in the future and became the ingest time.",
    ),
    Metric(
        "fleetcast_unreadable_records_total",
        "counter",
        "Records accepted that no read shows: without entity_id, or of a measurement not served.",
    ),
    Metric(
        "fleetcast_tenant_full_total",
        "counter",
        "Batches refused because of a bound on the tenant's names.",
    ),
    Metric(
        "fleetcast_commit_seconds",
        "histogram",
        "Time from a sealed batch to its durable commit, group commit and fsync included.",
    ),
    Metric(
        "fleetcast_ingest_buffer_bytes",
        "gauge",
        "Sealed bytes acknowledged and not yet durable, in asynchronous mode.",
    ),
    Metric(
        "fleetcast_limiter_failed_open_total",
        "counter",
        "Requests let through because the rate limit could not be asked.",
    ),
    Metric("fleetcast_compaction_bytes_total", "counter", "Bytes written into segments."),
    Metric("fleetcast_compaction_failed_total", "counter", "Compactions of a store that failed."),
    Metric("fleetcast_upkeep_failing", "gauge", "1 while the upkeep of a tenant's store fails."),
    Metric(
        "fleetcast_upkeep_failing_since_time_seconds",
        "gauge",
        "Since when the upkeep of a tenant's store fails, Unix time; 0 where it does not.",
    ),
    Metric(
        "fleetcast_upkeep_progress_time_seconds",
        "gauge",
        "When upkeep last did something or found nothing to do, Unix time.",
    ),
    Metric(
        "fleetcast_forecast_release_failed_total",
        "counter",
        "Batches on which a released model did not load or run, by family, model and role.",
    ),
    Metric(
        "fleetcast_forecast_batch_failed_total",
        "counter",
        "Batches whose input or truth could not be read or computed, by family.",
    ),
    Metric(
        "fleetcast_forecast_unkept_total",
        "counter",
        "Forecasts answered and not kept, by family: their tenant's quota is used up.",
    ),
    Metric(
        "fleetcast_forecast_unscored_total",
        "counter",
        "Forecasts that are not scored, by family and reason.",
    ),
    Metric(
        "fleetcast_forecast_scored_total",
        "counter",
        "Forecasts whose truth has come, by family, horizon, model and role.",
    ),
    Metric(
        "fleetcast_forecast_covered_total",
        "counter",
        "Scored forecasts whose truth was not above the quantile.",
    ),
    Metric(
        "fleetcast_forecast_snr_loss_millidecibels_total",
        "counter",
        "Pinball loss of scored SNR forecasts, all quantiles together.",
    ),
    Metric(
        "fleetcast_forecast_demand_loss_bytes_total",
        "counter",
        "Pinball loss of scored demand forecasts, all quantiles together.",
    ),
    Metric(
        "fleetcast_child_failures",
        "gauge",
        "How often in a row a child process ended by itself within 30 seconds of its start.",
    ),
    Metric(
        "fleetcast_child_silent",
        "gauge",
        "Child processes without a sign of life for half of service.watchdog_seconds.",
    ),
    Metric("fleetcast_processes_ready", "gauge", "Processes that serve."),
    Metric("fleetcast_tenant_up", "gauge", "1 if the tenant's store could be read."),
    Metric("fleetcast_tenant_rows", "gauge", "Records in the tenant's store."),
    Metric("fleetcast_tenant_values", "gauge", "Field values in the tenant's store."),
    Metric("fleetcast_tenant_series", "gauge", "Distinct measurements with tag sets."),
    Metric("fleetcast_tenant_stored_bytes", "gauge", "Bytes on disk of the tenant's store."),
    Metric(
        "fleetcast_series_lost_total",
        "counter",
        "Series for which the counters' memory had no room: they are counted nowhere.",
    ),
    Metric(
        "fleetcast_tenant_clock_lead_seconds",
        "gauge",
        "How far a write under a wrong clock lies ahead; 0 again once its time has come.",
    ),
    Metric(
        "fleetcast_tenant_expiry_held",
        "gauge",
        "1 while nothing of a tenant expires, as the clock may have jumped.",
    ),
    Metric("fleetcast_database_up", "gauge", "1 if the shared database answered."),
    Metric("fleetcast_database_standbys", "gauge", "Standbys that stream and are waited for."),
    Metric("fleetcast_database_bytes", "gauge", "Size of the shared database."),
    Metric("fleetcast_database_sessions", "gauge", "Sessions of all clients on the primary."),
    Metric("fleetcast_database_sessions_max", "gauge", "Bound on the sessions of the primary."),
    Metric(
        "fleetcast_database_log_hours", "gauge", "Hours of the log that the database still holds."
    ),
    Metric("fleetcast_objects_up", "gauge", "1 if the installation's object store answered."),
    Metric(
        "fleetcast_damaged_stores",
        "gauge",
        "Tenants of whose rows the object store has lost a segment.",
    ),
    Metric("fleetcast_object_cache_bytes", "gauge", "Bytes of objects kept on this machine."),
    Metric("fleetcast_resident_memory_bytes", "gauge", "Memory of all processes of the service."),
    Metric("fleetcast_open_descriptors", "gauge", "Descriptors of all processes of the service."),
    Metric("fleetcast_start_time_seconds", "gauge", "When the service was started, Unix time."),
    Metric("process_cpu_seconds_total", "counter", "CPU time of all processes of the service."),
    Metric("process_resident_memory_bytes", "gauge", "Memory of all processes of the service."),
    Metric("process_virtual_memory_bytes", "gauge", "Address space of all processes together."),
    Metric("process_open_fds", "gauge", "Descriptors of the process that holds the most."),
    Metric("process_max_fds", "gauge", "Descriptors that each process may hold."),
    Metric("process_start_time_seconds", "gauge", "When the service was started, Unix time."),
    Metric("fleetcast_build_info", "gauge", "Version of the service; the value is always 1."),
)

BUCKETS_SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Upper bounds of every histogram, in seconds. One more bucket without a bound follows the last."""
