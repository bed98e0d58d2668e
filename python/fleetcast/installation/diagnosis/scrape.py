"""Metrics of the running service, as its private listener shows them."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING
from urllib.request import ProxyHandler, build_opener

from fleetcast.installation.lock import seen

if TYPE_CHECKING:
    from pathlib import Path

_SECONDS = 5.0


def scraped(lock: Path) -> str | None:
    """Returns the text of `/metrics`; `None` if no service runs or answers. Raises `OSError`.

    The request bypasses the proxies of the environment, which do not reach this machine's loopback.
    """
    found = seen(lock)
    address = found.note.get("admin") if found.held else None
    if not isinstance(address, str) or not address.startswith("http://"):
        return None
    try:
        with build_opener(ProxyHandler({})).open(f"{address}/metrics", timeout=_SECONDS) as answer:
            text: str = answer.read().decode()
    except (OSError, http.client.HTTPException, UnicodeDecodeError):
        return None  # another check reports a service that does not answer
    return text
