"""Connections of this process, bounded by address, and closed when they only fail.

grpcio tells of calls, not of connections, and closes none on request. So the sockets of the process
are looked up, and one that has to go is shut down under the library, which then sees its end.
"""

from __future__ import annotations

import asyncio
import ipaddress
import resource
import socket
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator

_REFUSALS_MAX = 10
_ADDRESS_CONNECTIONS_MAX = 2_048
_LOOK_SECONDS = 0.25
_ANSWER_SECONDS = 0.01  # for the library to send the last refusal
_IPV6_PREFIX_BITS = 64
_DESCRIPTORS = Path("/proc/self/fd")

logger = structlog.get_logger(__name__)


class _Connection(NamedTuple):
    descriptor: int
    client: str
    """Address and port, as gRPC spells them."""
    owner: str
    """Address that the connection counts for: of IPv4, or 64 bits of one of IPv6."""


class Connections:
    """All connections of clients of this process."""

    def __init__(self) -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._total_max = soft // 2  # the others are files of stores
        self._address_max = min(_ADDRESS_CONNECTIONS_MAX, self._total_max // 2)
        self._refusals: dict[str, int] = {}
        self._in_use: set[str] = set()

    def note_accepted(self, client: str) -> None:
        """Counts a call whose key was good."""
        self._refusals.pop(client, None)
        self._in_use.add(client)

    def note_refused(self, client: str) -> None:
        """Counts a call whose key was not; after ten in a row the connection is closed."""
        refusals = self._refusals[client] = self._refusals.get(client, 0) + 1
        if refusals >= _REFUSALS_MAX:
            del self._refusals[client]
            asyncio.get_running_loop().call_later(_ANSWER_SECONDS, _close, client)

    async def keep_bounded(self) -> None:
        """Closes connections beyond the bounds, until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if _descriptor_count() > self._address_max:
                self._close_surplus()
            elif len(self._refusals) + len(self._in_use) > self._total_max:
                self._forget_closed({each.client for each in _connections()})

    def _close_surplus(self) -> None:
        by_owner: dict[str, list[_Connection]] = defaultdict(list)
        for connection in _connections():
            by_owner[connection.owner].append(connection)
        total = sum(map(len, by_owner.values()))
        self._forget_closed({each.client for some in by_owner.values() for each in some})
        for owner, some in sorted(by_owner.items(), key=lambda item: -len(item[1])):
            surplus = max(len(some) - self._address_max, min(total - self._total_max, len(some)))
            if surplus <= 0:
                break
            # First connections without an accepted call.
            some.sort(key=lambda connection: connection.client in self._in_use)
            for connection in some[:surplus]:
                _shut(connection.descriptor)
            total -= surplus
            logger.warning("too many connections", address=owner, closed=surplus)

    def _forget_closed(self, clients: set[str]) -> None:
        self._refusals = {c: count for c, count in self._refusals.items() if c in clients}
        self._in_use &= clients


def _descriptor_count() -> int:
    return sum(1 for _ in _DESCRIPTORS.iterdir())


def _connections() -> Iterator[_Connection]:
    for descriptor, found in _sockets():
        try:
            peer, port = found.getpeername()[:2]
        except OSError:  # it listens, or has ended
            continue
        address = ipaddress.ip_address(peer.partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
            prefix = int(address) >> _IPV6_PREFIX_BITS
            yield _Connection(descriptor, f"ipv6:%5B{peer}%5D:{port}", f"{prefix:x}::/64")
        else:
            peer = str(getattr(address, "ipv4_mapped", None) or address)
            yield _Connection(descriptor, f"ipv4:{peer}:{port}", peer)


def _sockets() -> Iterator[tuple[int, socket.socket]]:
    """TCP sockets of the process, each for one step of the loop. They stay the library's."""
    for path in list(_DESCRIPTORS.iterdir()):
        try:
            if not str(path.readlink()).startswith("socket:"):
                continue
            found = socket.socket(fileno=int(path.name))
        except OSError:  # closed meanwhile
            continue
        try:
            if found.family in {socket.AF_INET, socket.AF_INET6}:
                yield int(path.name), found
        finally:
            found.detach()


def _close(client: str) -> None:
    for connection in _connections():
        if connection.client == client:
            _shut(connection.descriptor)


def _shut(descriptor: int) -> None:
    found = socket.socket(fileno=descriptor)
    try:
        found.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended by itself
    finally:
        found.detach()
