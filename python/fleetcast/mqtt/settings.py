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
        """Name or address."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The port, by default that of the scheme."""
        url = urlsplit(self.url)
        return url.port or _PORTS[url.scheme]

    @property
    def tls(self) -> bool:
        """True for `mqtts://`."""
        return urlsplit(self.url).scheme == "mqtts"


@dataclass(frozen=True)
class TopicSettings:
    """Topics that are subscribed to, and names of what their messages do not say."""

    template: str
    measurement: str = "telemetry"
    tags: dict[str, str] = field(default_factory=dict)
    time_unit: str = "s"


@dataclass(frozen=True)
class ServiceSettings:
    """The service that stores. `settle_seconds`: after so long it has done with any request."""

    url: str
    key_file: str = ""
    settle_seconds: float = 31.0


@dataclass(frozen=True)
class BatchSettings:
    """A batch goes out at so many records, or so long after its first message."""

    records: int = 500
    seconds: float = 1.0


@dataclass(frozen=True)
class SpoolSettings:
    """Folder of what is not stored yet, its most bytes, and when messages are acknowledged."""

    folder: str
    bytes_max: int = 256 << 20
    acknowledge: str = "stored"


@dataclass(frozen=True)
class BridgeSettings:
    """Everything a bridge is told, secrets read."""

    broker: BrokerSettings
    topics: list[TopicSettings]
    service: ServiceSettings
    batch: BatchSettings
    spool: SpoolSettings
    key: str
    password: str
