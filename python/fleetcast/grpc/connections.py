"""Connections of this process, bounded by address, and closed when they only fail.

grpcio tells of calls, not of connections, and closes none on request. So the sockets of the process
are looked up, and one that has to go is shut down under the library, which then sees its end.
"""

from __future__ import annotations

import asyncio
import ipaddress
import resource
import socket
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_REFUSALS_MAX = 10
_CONNECTIONS_MAX = 65_536
_ADDRESS_CONNECTIONS_MAX = 2_048
_LOOK_SECONDS = 0.25
_ANSWER_SECONDS = 0.01  # for the library to send the last refusal
_LOOKS_SHARE = 0.05  # of the loop: a process with thousands of files takes long to look through
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
    """All connections of clients of this process, which listens on `port`."""

    def __init__(self, port: int) -> None:
        self._port = port
        # Half of the descriptors are for files of stores.
        self._total_max = min(_descriptors_max() // 2, _CONNECTIONS_MAX)
        self._address_max = min(_ADDRESS_CONNECTIONS_MAX, self._total_max // 2)
        self._refusals: dict[str, int] = {}
        self._refused: set[str] = set()
        """Clients whose connections are closed with the next look."""
        self._in_use: set[str] = set()
        self._first_seen: dict[str, int] = {}
        """Number of the look that found a client first, while there are many."""
        self._looks = 0
        self._look_seconds = 0.0
        """Duration of the last look."""

    def note_accepted(self, client: str) -> None:
        """Counts a call whose key was good."""
        self._refusals.pop(client, None)
        self._in_use.add(client)

    def note_refused(self, client: str) -> None:
        """Counts a call whose key was not; after ten in a row the connection is closed."""
        refusals = self._refusals[client] = self._refusals.get(client, 0) + 1
        if refusals < _REFUSALS_MAX:
            return
        del self._refusals[client]
        if not self._refused:
            seconds = max(_ANSWER_SECONDS, self._look_seconds / _LOOKS_SHARE)
            asyncio.get_running_loop().call_later(seconds, self._close_refused)
        self._refused.add(client)

    async def keep_bounded(self) -> None:
        """Closes connections beyond the bounds, until it is cancelled."""
        while True:
            await asyncio.sleep(max(_LOOK_SECONDS, self._look_seconds / _LOOKS_SHARE))
            if len(_descriptors()) > self._address_max:
                self._close_surplus()
            elif len(self._refusals) + len(self._in_use) > self._total_max:
                self._forget_closed({each.client for each in self._look()})

    def _look(self) -> list[_Connection]:
        began = time.perf_counter()
        connections = (_connection(descriptor, self._port) for descriptor in _descriptors())
        found = [connection for connection in connections if connection is not None]
        self._look_seconds = time.perf_counter() - began
        return found

    def _close_refused(self) -> None:
        refused, self._refused = self._refused, set()
        for connection in self._look():
            if connection.client in refused:
                self._shut(connection)

    def _close_surplus(self) -> None:
        connections = self._look()
        self._forget_closed({each.client for each in connections})
        self._looks += 1
        by_owner: dict[str, list[_Connection]] = defaultdict(list)
        for connection in connections:
            by_owner[connection.owner].append(connection)
            self._first_seen.setdefault(connection.client, self._looks)
        total = len(connections)
        for owner, some in sorted(by_owner.items(), key=lambda item: -len(item[1])):
            surplus = max(len(some) - self._address_max, min(total - self._total_max, len(some)))
            if surplus <= 0:
                break
            for connection in sorted(some, key=self._worth)[:surplus]:
                self._shut(connection)
            total -= surplus
            logger.warning("too many connections", address=owner, closed=surplus)

    def _worth(self, connection: _Connection) -> tuple[bool, int]:
        """Sorts first what is closed first: no call was accepted, and it has had the most time."""
        return connection.client in self._in_use, self._first_seen[connection.client]

    def _shut(self, connection: _Connection) -> None:
        # The library may have closed it since, and opened something else under its number.
        if _connection(connection.descriptor, self._port) == connection:
            with _borrowed(connection.descriptor) as found, suppress(OSError):
                found.shutdown(socket.SHUT_RDWR)

    def _forget_closed(self, clients: set[str]) -> None:
        self._refusals = {c: count for c, count in self._refusals.items() if c in clients}
        self._in_use &= clients
        self._first_seen = {c: look for c, look in self._first_seen.items() if c in clients}


def _descriptors_max() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft


def _descriptors() -> Sequence[int]:
    """Descriptors of the process; all that it may have if none is left to list them with."""
    try:
        return [int(path.name) for path in _DESCRIPTORS.iterdir()]
    except OSError:
        return range(_descriptors_max())


def _connection(descriptor: int, port: int) -> _Connection | None:
    """The connection to `port` that a descriptor is, if it is one."""
    try:
        if not str((_DESCRIPTORS / str(descriptor)).readlink()).startswith("socket:"):
            return None
        with _borrowed(descriptor) as found:
            if found.family not in {socket.AF_INET, socket.AF_INET6}:
                return None
            if found.getsockname()[1] != port:  # such as one to a database
                return None
            peer, peer_port = found.getpeername()[:2]
    except OSError:  # it listens, or has ended
        return None
    address = ipaddress.ip_address(peer.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        prefix = int(address) >> _IPV6_PREFIX_BITS
        return _Connection(descriptor, f"ipv6:%5B{peer}%5D:{peer_port}", f"{prefix:x}::/64")
    peer = str(getattr(address, "ipv4_mapped", None) or address)
    return _Connection(descriptor, f"ipv4:{peer}:{peer_port}", peer)


@contextmanager
def _borrowed(descriptor: int) -> Iterator[socket.socket]:
    """A socket that stays the library's."""
    found = socket.socket(fileno=descriptor)
    try:
        yield found
    finally:
        found.detach()
