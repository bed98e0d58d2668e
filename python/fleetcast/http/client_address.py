"""The address that a client speaks from, behind trusted proxies too."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Networks:
    """Addresses and networks, as settings list them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._networks = [ip_network(text, strict=False) for text in texts]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def has(self, client: str) -> bool:
        """Looks a client up, by the address that `ClientAddress` finds."""
        if not self._networks:
            return False
        address = _address(client)
        return address is not None and address in self

    def __contains__(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self._networks)


class ClientAddress:
    """Finds the address of a client; `trusted_proxies` are addresses and networks.

    Anybody can send `X-Forwarded-For`; only what a trusted proxy added to it is known, and each
    adds on the right whom it heard.
    """

    def __init__(self, trusted_proxies: Sequence[str]) -> None:
        self._proxies = Networks(trusted_proxies)

    def of(self, peer: str, forwarded: str | None) -> str:
        """The peer, or the right-most forwarded address that is no trusted proxy.

        An entry that is no address ends the search: whoever passed it on is the client then.
        """
        if not self._proxies or not forwarded:
            return peer
        client = _address(peer)
        if client is None or client not in self._proxies:
            return peer
        for entry in reversed(forwarded.split(",")):
            text = entry.strip()
            if not text:  # an empty list element means nothing (RFC 9110, 5.6.1)
                continue
            address = _address(text)
            if address is None:
                break
            client = address
            if client not in self._proxies:
                break
        return str(client)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """The address in an entry, which may have a port, as some proxies write it."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
