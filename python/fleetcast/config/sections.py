"""All settings: each with its default, its bounds, its unit in its name, and its explanation.

The docstring below a setting is its explanation: in `fleetcast.toml` as `init` writes it, in
`config print --explain`, and in the table of `docs/operations.md`. Defaults that the engine shares
come from the engine. Paths are relative to the data directory unless they are absolute. Example of
`fleetcast.toml`:

    http.address = "0.0.0.0:8080"
    limits.requests_per_minute = 600
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from fleetcast import engine
from fleetcast.config import checks
from fleetcast.config.checks import between

if TYPE_CHECKING:
    from fleetcast.config.checks import Check

T = TypeVar("T")

FAMILIES = ("snr", "demand")
EMBEDDED, POSTGRESQL = BACKENDS = ("embedded", "postgresql")
_DAY_SECONDS = 86_400
_BYTES_MAX = 1 << 40
_BATCH_BYTES_MAX = 32 << 20  # a batch becomes one block, whose format bounds its text


def setting(default: T, *tests: Check, secret: bool = False, cold: bool = False) -> T:
    """Declares a field with its default and the checks of its values.

    `config print` masks a `secret` setting. A `cold` setting takes effect only at the next start.
    """
    metadata = {"checks": tests, "secret": secret, "cold": cold}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Service:
    """Environment of this installation, and the watchdog of its processes.

    Healthy children show a sign of life every second or two. Example: at 60, `/readyz` fails after
    30 s without a sign.
    """

    environment: str = setting("sandbox", checks.environment, cold=True)
    """Environment of this installation. Each key carries the name, as in `ftk_sandbox_…`, and opens
    only an installation of the same environment.
    """
    watchdog_seconds: float = setting(60.0, checks.zero_or_between(5, 3600), cold=True)
    """A child process without a sign of life for so long is killed and started again. 0 turns the
    watchdog off.
    """


@dataclass(frozen=True, kw_only=True)
class Http:
    """The public HTTP listener.

    Example: `trusted_proxies = ["10.0.0.1"]` believes `X-Forwarded-For` only from this proxy.
    """

    address: str = setting("127.0.0.1:8080", checks.address, cold=True)
    """Address and port of the public HTTP listener."""
    workers: int = setting(2, between(1, 256), cold=True)
    """HTTP worker processes."""
    threads: int = setting(4, between(1, 256), cold=True)
    """Requests of one tenant that a worker serves at the same time. The worker has twice as many
    threads.
    """
    read_deadline_seconds: float = setting(15.0, between(0.1, 3600))
    """Time from the first byte of a request's head to the end of the head."""
    request_deadline_seconds: float = setting(30.0, between(0.1, 3600))
    """Time from the end of a request's head to the last byte of its body."""
    cors_origins: tuple[str, ...] = setting((), checks.origins)
    """Origins of browser pages that may call the API, such as `https://console.example.com`."""
    trusted_proxies: tuple[str, ...] = setting((), checks.networks)
    """Addresses and networks of proxies whose `X-Forwarded-For` is believed. Without them all
    clients behind a proxy share one rate limit.
    """


@dataclass(frozen=True, kw_only=True)
class Grpc:
    """The gRPC ingest listener. Example: `address = "off"` starts no gRPC listener."""

    address: str = setting("127.0.0.1:8443", checks.address_or_off, cold=True)
    """Address and port of the gRPC listener, or `off`."""
    certificate: str = setting("tls/server.pem", checks.not_empty, cold=True)
    """File of the certificate of gRPC, with its chain, as PEM."""
    private_key: str = setting("tls/server.key", checks.not_empty, cold=True)
    """File of the certificate's private key, as PEM."""
    processes: int = setting(1, between(1, 64), cold=True)
    """gRPC processes. A second process helps if the first uses a whole core."""
    records_per_call_max: int = setting(engine.CALL_RECORDS_MAX, between(1, 1_000_000))
    """Records that a gRPC call may write. A call with more records is refused whole."""
    message_bytes_max: int = setting(16_777_216, between(1024, _BATCH_BYTES_MAX), cold=True)
    """Bytes of a gRPC message. A longer message is refused."""
    reflection: bool | None = setting(None, cold=True)
    """Lets clients ask for the gRPC services without a key. By default only if the environment is
    `development` or `sandbox`.
    """


@dataclass(frozen=True, kw_only=True)
class Admin:
    """The private listener with probes, metrics and the console."""

    address: str = setting("127.0.0.1:9090", checks.address_or_off, cold=True)
    """Address and port of the private listener (probes, metrics, console), or `off`."""
    hosts: tuple[str, ...] = setting((), checks.host_names)
    """Names that the header `Host` of a request to the private listener may have, such as
    `node1.example.com`.
    """


@dataclass(frozen=True, kw_only=True)
class Adapters:
    """The listener for other protocols. The rate limit of `limits` does not count here."""

    address: str = setting("off", checks.address_or_off, cold=True)
    """Address and port of the listener for other protocols, or `off`."""
    workers: int = setting(1, between(1, 256), cold=True)
    """Worker processes of the adapter listener."""
    threads: int = setting(4, between(1, 256), cold=True)
    """Requests of one tenant that such a worker serves at the same time."""
    records_max: int = setting(engine.CALL_RECORDS_MAX, between(1, 1_000_000))
    """Records of a body. A body with more records is refused whole."""
    body_bytes_max: int = setting(16_777_216, between(1024, _BATCH_BYTES_MAX))
    """Bytes of a body, both as it comes and after decompression."""
    requests_per_minute: int = setting(0, between(0, 1_000_000))
    """Requests a minute that an address may send to the adapter listener; 0 for any number."""
    query_samples_max: int = setting(50_000_000, between(1, 1_000_000_000))
    """Samples, and values at steps, that a query of PromQL may use: up to 16 bytes each."""
    query_seconds_max: int = setting(30, between(1, 3600))
    """Seconds that a query of PromQL may take."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds on requests and on tenants.

    Example: with `lockout_failures = 10` and `lockout_window_seconds = 300`, ten bad keys in five
    minutes lock an address out for `lockout_seconds`.
    """

    requests_per_minute: int = setting(30, between(0, 1_000_000))
    """Requests a minute that an address may send to the public HTTP listener; 0 for any number."""
    lockout_failures: int = setting(10, between(0, 1_000_000))
    """Refused keys after which an address is locked out; 0 turns the lockout off."""
    lockout_window_seconds: int = setting(300, between(1, _DAY_SECONDS))
    """Time within which refused keys count together."""
    lockout_seconds: int = setting(300, between(1, _DAY_SECONDS))
    """Time for which an address stays locked out."""
    batch_records_max: int = setting(engine.BATCH_RECORDS_MAX, between(1, 1_000_000))
    """Records of a `POST /telemetry`. A batch with more records is refused whole."""
    body_bytes_max: int = setting(1_048_576, between(1024, _BATCH_BYTES_MAX))
    """Bytes of the body of a `POST /telemetry`."""
    tags_max: int = setting(engine.TAGS_MAX, between(1, 1024))
    """Tags of a record."""
    # A row of each of 16 entities must fit, so that every page of an answer makes progress.
    point_budget: int = setting(engine.POINTS_MAX, between(16, 100_000_000))
    """Rows of an answer of `GET /topology/series`. A longer answer comes in pages."""
    history_horizon_days: int = setting(engine.HISTORY_DAYS_MAX, between(1, 36_500))
    """Days before now that `GET /topology/series` may reach back."""
    raw_span_seconds: int = setting(engine.RAW_SPAN_SECONDS_MAX, between(1, 36_500 * _DAY_SECONDS))
    """Longest span of `GET /topology/series` without an interval."""
    series_row_limit: int = setting(50_000, between(1, 1_000_000_000))
    """No effect. The contract names this setting."""
    link_ids_max: int = setting(100, between(1, 10_000))
    """Links of one `GET /predictions`."""
    fields_max: int = setting(engine.FIELDS_MAX, between(1, 65_536))
    """Fields of a record."""
    tenant_fields_max: int = setting(engine.TENANT_FIELDS_MAX, between(1, 10_000_000))
    """Distinct fields that a tenant may ever write, over all measurements."""
    tenant_series_max: int = setting(engine.TENANT_SERIES_MAX, between(1, 100_000_000))
    """Distinct series (a measurement with its tags) that a tenant may ever write."""
    tenant_names_bytes_max: int = setting(engine.TENANT_NAMES_BYTES_MAX, between(1024, _BYTES_MAX))
    """Bytes of a tenant's names before they are packed. Bounds the memory of each process that
    serves the tenant.
    """
    answer_values_max: int = setting(engine.ANSWER_VALUES_MAX, between(1000, 100_000_000))
    """Values of an answer of `GET /topology/series`, times and nulls included. Bounds the memory of
    a read.
    """
    exempt: tuple[str, ...] = setting((), checks.networks)
    """Addresses and networks that the rate limit does not count, such as `10.20.0.0/16`. The
    lockout holds for them too.
    """

    @property
    def of_batch(self) -> engine.RecordBounds:
        """Bounds on the content of a batch that all transports share, as a plane takes them."""
        return {
            "tags_max": self.tags_max,
            "fields_max": self.fields_max,
            "tenant_fields_max": self.tenant_fields_max,
            "tenant_series_max": self.tenant_series_max,
            "tenant_names_bytes_max": self.tenant_names_bytes_max,
        }


@dataclass(frozen=True, kw_only=True)
class Ingest:
    """When a write is acknowledged, and the queue of asynchronous mode.

    With `mode = "sync"` a batch is on disk when it is acknowledged. With `"async"` a power cut may
    lose the batches of the last `flush_interval_ms` and of one commit.
    """

    mode: str = setting("sync", checks.one_of("sync", "async"))
    """`sync` answers a write after the sync of the disk, `async` as soon as the batch is checked
    and queued.
    """
    buffer_bytes_max: int = setting(67_108_864, between(1_048_576, _BYTES_MAX))
    """Sealed bytes that may wait in the queue of `async`, for each tenant and process. Also bounds
    the gRPC messages of a process.
    """
    flush_interval_ms: int = setting(100, between(1, 60_000))
    """Time between two flushes of the queue of `async`. A crash may lose so much."""

    @property
    def queue_bytes_max(self) -> int | None:
        """Bound of the queue in which writes wait; `None` if a write waits for the disk."""
        return self.buffer_bytes_max if self.mode == "async" else None


@dataclass(frozen=True, kw_only=True)
class Store:
    """The store of telemetry, accounts and forecasts: on one machine, or shared by many nodes.

    `connections` is for each process. Example: 3 nodes with 6 processes each and `connections = 4`
    open up to 72.
    """

    backend: str = setting("embedded", checks.one_of(*BACKENDS), cold=True)
    """`embedded` keeps everything in the data directory. `postgresql` shares one installation among
    many machines.
    """
    database: str = setting("", checks.database, secret=True, cold=True)
    """URL of the PostgreSQL database, with all hosts. Secret."""
    objects: str = setting("", checks.objects, cold=True)
    """URL of the object store: `s3://BUCKET/PREFIX`, `gs://`, `az://` or `file:///FOLDER`."""
    connections: int = setting(4, between(2, 64), cold=True)
    """Connections to the database that each process may have."""
    durability: str = setting("quorum", checks.one_of("quorum", "managed"), cold=True)
    """`quorum`: a standby has each commit before it is acknowledged. `managed`: the provider
    replicates below PostgreSQL.
    """
    cache_bytes: int = setting(10 << 30, between(64 << 20, _BYTES_MAX), cold=True)
    """Bytes of this machine's cache of segments from the object store."""
    compact_after_seconds: int = setting(3600, between(1, _DAY_SECONDS))
    """Age at which a block in the log makes a compaction due."""


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The topology read."""

    simulate: bool = setting(False)  # noqa: FBT003 - a default
    """Shows a simulated constellation to tenants who have never written of satellites, ground
    stations or links.
    """


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Predictions."""

    families: tuple[str, ...] = setting(FAMILIES, checks.distinct(FAMILIES))
    """Kinds of forecasts that are served: `snr` of links, `demand` of pools. An empty list turns
    forecasts off.
    """
    fresh_seconds: int = setting(300, between(1, _DAY_SECONDS))
    """Age up to which a stored forecast is served without a new computation."""
    cooldown_seconds: int = setting(60, between(0, _DAY_SECONDS))
    """Time for which an entity is left alone after its forecast failed."""
    fill_budget: int = setting(100, between(0, 10_000))
    """Entities whose forecasts one request may have computed."""


@dataclass(frozen=True, kw_only=True)
class Security:
    """Files of the installation's secrets."""

    master_key_file: str = setting("master.key", checks.not_empty, cold=True)
    """File of the master key, which wraps the keys of all tenants."""
    master_key_command: str = setting("", secret=True, cold=True)
    """Program that prints the master key, in place of the file."""
    accounts_revision_file: str = setting("accounts.revision", checks.not_empty, cold=True)
    """File with the number of changes of the accounts. It shows if an older copy of the accounts
    was put back.
    """


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings, in sections named as in `fleetcast.toml`."""

    service: Service = field(default_factory=Service)
    http: Http = field(default_factory=Http)
    grpc: Grpc = field(default_factory=Grpc)
    admin: Admin = field(default_factory=Admin)
    adapters: Adapters = field(default_factory=Adapters)
    limits: Limits = field(default_factory=Limits)
    ingest: Ingest = field(default_factory=Ingest)
    store: Store = field(default_factory=Store)
    topology: Topology = field(default_factory=Topology)
    forecast: Forecast = field(default_factory=Forecast)
    security: Security = field(default_factory=Security)
