"""Settings of a bridge, a class for each section of its file."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

TIME_UNITS = ("s", "ms", "us", "ns")
ACKNOWLEDGE = ("stored", "spooled")
_PORTS = {"mqtt": 1883, "mqtts": 8883}


@dataclass(frozen=True)
class BrokerSettings:
    """Address and credentials of the broker. `client_id` names the session that it keeps."""

    url: str
    client_id: str
    username: str = ""
    password_file: str = ""
    authority: str = ""
    certificate: str = ""
    private_key: str = ""
    session_seconds: int = 7 * 86_400

    @property
    def host(self) -> str:
        """Name or address of the broker. Example: `broker.example` for `mqtts://broker.example`."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The port of the URL, or the scheme's default port."""
        url = urlsplit(self.url)
        return url.port or _PORTS[url.scheme]

    @property
    def tls(self) -> bool:
        """True for `mqtts://`."""
        return urlsplit(self.url).scheme == "mqtts"


@dataclass(frozen=True)
class TopicSettings:
    """Topics to subscribe to, and the names that their messages lack."""

    template: str
    measurement: str = "telemetry"
    tags: dict[str, str] = field(default_factory=dict)
    time_unit: str = "s"


@dataclass(frozen=True)
class ServiceSettings:
    """The service that stores. After `settle_seconds` the service works on no earlier request."""

    url: str
    key_file: str = ""
    settle_seconds: float = 31.0


@dataclass(frozen=True)
class BatchSettings:
    """A batch is sent at `records` records, or `seconds` after its first message."""

    records: int = 500
    seconds: float = 1.0


@dataclass(frozen=True)
class SpoolSettings:
    """Folder of unstored batches, its bound in bytes, and when messages are acknowledged."""

    folder: str
    bytes_max: int = 256 << 20
    acknowledge: str = "stored"


@dataclass(frozen=True)
class BridgeSettings:
    """All settings of a bridge, with the secrets read."""

    broker: BrokerSettings
    topics: list[TopicSettings]
    service: ServiceSettings
    batch: BatchSettings
    spool: SpoolSettings
    key: str
    password: str
