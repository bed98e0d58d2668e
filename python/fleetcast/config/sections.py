"""All settings: a line each, with its default, its bounds and its unit in its name.

Defaults that the engine shares come from the engine; `docs/operations.md` has the table. Paths are
relative to the data directory unless they are absolute. Example of `fleetcast.toml`:

    [http]
    address = "0.0.0.0:8080"

    [limits]
    requests_per_minute = 600
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
    """Environment of this installation, and how long a child may show no sign of life.

    Healthy children show a sign every second or two. `watchdog_seconds` is longer, or 0 for no
    bound. Example: at 60, `/readyz` fails after 30 s without a sign.
    """

    environment: str = setting("sandbox", checks.environment, cold=True)
    watchdog_seconds: float = setting(60.0, checks.zero_or_between(5, 3600), cold=True)


@dataclass(frozen=True, kw_only=True)
class Http:
    """The public HTTP listener.

    A request must arrive within `read_deadline_seconds`, and its answer within
    `request_deadline_seconds`. Example: `trusted_proxies = ["10.0.0.1"]` believes `X-Forwarded-For`
    only from this proxy.
    """

    address: str = setting("127.0.0.1:8080", checks.address, cold=True)
    workers: int = setting(2, between(1, 256), cold=True)
    threads: int = setting(4, between(1, 256), cold=True)
    read_deadline_seconds: float = setting(15.0, between(0.1, 3600))
    request_deadline_seconds: float = setting(30.0, between(0.1, 3600))
    cors_origins: tuple[str, ...] = setting((), checks.origins)
    trusted_proxies: tuple[str, ...] = setting((), checks.networks)


@dataclass(frozen=True, kw_only=True)
class Grpc:
    """The gRPC ingest listener. If `reflection` is not set, the environment decides.

    Example: `address = "off"` starts no gRPC listener.
    """

    address: str = setting("127.0.0.1:8443", checks.address_or_off, cold=True)
    certificate: str = setting("tls/server.pem", checks.not_empty, cold=True)
    private_key: str = setting("tls/server.key", checks.not_empty, cold=True)
    processes: int = setting(1, between(1, 64), cold=True)
    records_per_call_max: int = setting(engine.CALL_RECORDS_MAX, between(1, 1_000_000))
    message_bytes_max: int = setting(16_777_216, between(1024, _BATCH_BYTES_MAX), cold=True)
    reflection: bool | None = setting(None, cold=True)


@dataclass(frozen=True, kw_only=True)
class Admin:
    """The private listener with probes, metrics and the console.

    `hosts` adds names that the `Host` field may have. Example: `hosts = ["node1.internal"]`.
    """

    address: str = setting("127.0.0.1:9090", checks.address_or_off, cold=True)
    hosts: tuple[str, ...] = setting((), checks.host_names)


@dataclass(frozen=True, kw_only=True)
class Adapters:
    """The listener for other protocols. `body_bytes_max` bounds a body both packed and unpacked.

    `requests_per_minute` is for each client address; 0 means any number. The setting of the same
    name in `limits` does not count here.
    """

    address: str = setting("off", checks.address_or_off, cold=True)
    workers: int = setting(1, between(1, 256), cold=True)
    threads: int = setting(4, between(1, 256), cold=True)
    records_max: int = setting(engine.CALL_RECORDS_MAX, between(1, 1_000_000))
    body_bytes_max: int = setting(16_777_216, between(1024, _BATCH_BYTES_MAX))
    requests_per_minute: int = setting(0, between(0, 1_000_000))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds on requests and on tenants. 0 turns the request rate limit or the lockout off.

    Example: with `lockout_failures = 10` and `lockout_window_seconds = 300`, ten bad keys in five
    minutes lock an address out for `lockout_seconds`.
    """

    requests_per_minute: int = setting(30, between(0, 1_000_000))
    lockout_failures: int = setting(10, between(0, 1_000_000))
    lockout_window_seconds: int = setting(300, between(1, _DAY_SECONDS))
    lockout_seconds: int = setting(300, between(1, _DAY_SECONDS))
    batch_records_max: int = setting(engine.BATCH_RECORDS_MAX, between(1, 1_000_000))
    body_bytes_max: int = setting(1_048_576, between(1024, _BATCH_BYTES_MAX))
    tags_max: int = setting(engine.TAGS_MAX, between(1, 1024))
    # A row of each of 16 entities must fit, so that every page of an answer makes progress.
    point_budget: int = setting(engine.POINTS_MAX, between(16, 100_000_000))
    history_horizon_days: int = setting(engine.HISTORY_DAYS_MAX, between(1, 36_500))
    raw_span_seconds: int = setting(engine.RAW_SPAN_SECONDS_MAX, between(1, 36_500 * _DAY_SECONDS))
    # This setting has no effect. It exists because the contract names it (docs/operations.md).
    series_row_limit: int = setting(50_000, between(1, 1_000_000_000))
    link_ids_max: int = setting(100, between(1, 10_000))
    fields_max: int = setting(engine.FIELDS_MAX, between(1, 65_536))
    tenant_fields_max: int = setting(engine.TENANT_FIELDS_MAX, between(1, 10_000_000))
    tenant_series_max: int = setting(engine.TENANT_SERIES_MAX, between(1, 100_000_000))
    tenant_names_bytes_max: int = setting(engine.TENANT_NAMES_BYTES_MAX, between(1024, _BYTES_MAX))
    answer_values_max: int = setting(engine.ANSWER_VALUES_MAX, between(1000, 100_000_000))
    exempt: tuple[str, ...] = setting((), checks.networks)

    @property
    def of_batch(self) -> dict[str, int]:
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
    buffer_bytes_max: int = setting(67_108_864, between(1_048_576, _BYTES_MAX))
    flush_interval_ms: int = setting(100, between(1, 60_000))

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
    database: str = setting("", checks.database, secret=True, cold=True)
    objects: str = setting("", checks.objects, cold=True)
    connections: int = setting(4, between(2, 64), cold=True)
    durability: str = setting("quorum", checks.one_of("quorum", "managed"), cold=True)
    cache_bytes: int = setting(10 << 30, between(64 << 20, _BYTES_MAX), cold=True)
    compact_after_seconds: int = setting(3600, between(1, _DAY_SECONDS))


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The topology read."""

    simulate: bool = setting(False)  # noqa: FBT003 - a default


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Predictions. `fill_budget` is the number of entities whose forecasts a request may compute.

    A forecast is computed again if it is older than `fresh_seconds`. Example: with `fill_budget =
    50`, a request for 80 new links computes 50, and the next request computes 30.
    """

    families: tuple[str, ...] = setting(FAMILIES, checks.distinct(FAMILIES))
    fresh_seconds: int = setting(300, between(1, _DAY_SECONDS))
    cooldown_seconds: int = setting(60, between(0, _DAY_SECONDS))
    fill_budget: int = setting(100, between(0, 10_000))


@dataclass(frozen=True, kw_only=True)
class Security:
    """Source of the master key. If `master_key_command` is set, it replaces the file."""

    master_key_file: str = setting("master.key", checks.not_empty, cold=True)
    master_key_command: str = setting("", secret=True, cold=True)
    accounts_revision_file: str = setting("accounts.revision", checks.not_empty, cold=True)


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
