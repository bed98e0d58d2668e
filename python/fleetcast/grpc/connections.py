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
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator

_REFUSALS_MAX = 10
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
    """All connections of clients of this process."""

    def __init__(self) -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._total_max = soft // 2  # the others are files of stores
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
            if _descriptor_count() > self._address_max:
                self._close_surplus()
            elif len(self._refusals) + len(self._in_use) > self._total_max:
                self._forget_closed({each.client for each in self._look()})

    def _look(self) -> list[_Connection]:
        began = time.perf_counter()
        found = list(_connections())
        self._look_seconds = time.perf_counter() - began
        return found

    def _close_refused(self) -> None:
        refused, self._refused = self._refused, set()
        for connection in self._look():
            if connection.client in refused:
                _shut(connection.descriptor)

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
                _shut(connection.descriptor)
            total -= surplus
            logger.warning("too many connections", address=owner, closed=surplus)

    def _worth(self, connection: _Connection) -> tuple[bool, int]:
        """Sorts first what is closed first: no call was accepted, and it has had the most time."""
        return connection.client in self._in_use, self._first_seen[connection.client]

    def _forget_closed(self, clients: set[str]) -> None:
        self._refusals = {c: count for c, count in self._refusals.items() if c in clients}
        self._in_use &= clients
        self._first_seen = {c: look for c, look in self._first_seen.items() if c in clients}


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


def _shut(descriptor: int) -> None:
    found = socket.socket(fileno=descriptor)
    try:
        found.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended by itself
    finally:
        found.detach()
