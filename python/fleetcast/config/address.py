"""Listening addresses: `HOST:PORT`, with an IPv6 host in brackets."""

from __future__ import annotations

from typing import NamedTuple

PORT_MAX = 65_535


class Address(NamedTuple):
    """Host and port of a listener. The system picks a free port if the port is 0."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """Reads `127.0.0.1:8080`, `localhost:0` or `[::1]:8080`. Raises `ValueError`."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    plain = port.isascii() and port.isdigit() and len(port) <= len(str(PORT_MAX))
    sound = colon and host and plain and int(port) <= PORT_MAX and (":" in host) == bracketed
    if not sound or host.strip() != host:
        message = "must be HOST:PORT, such as 127.0.0.1:8080"
        raise ValueError(message)
    return Address(host, int(port))
