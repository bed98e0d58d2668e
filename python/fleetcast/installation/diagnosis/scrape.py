"""Metrics of the service that runs, as its private listener shows them."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING
from urllib.request import ProxyHandler, build_opener

from fleetcast.installation.lock import seen

if TYPE_CHECKING:
    from pathlib import Path

_SECONDS = 5.0


def scraped(lock: Path) -> str | None:
    """The text of `/metrics`; `None` if no service runs, or it cannot be asked. Raises `OSError`.

    The request goes past the proxies of the environment, which do not reach this machine's
    loopback.
    """
    found = seen(lock)
    address = found.note.get("admin") if found.held else None
    if not isinstance(address, str) or not address.startswith("http://"):
        return None
    try:
        with build_opener(ProxyHandler({})).open(f"{address}/metrics", timeout=_SECONDS) as answer:
            text: str = answer.read().decode()
    except (OSError, http.client.HTTPException, UnicodeDecodeError):
        return None  # whether it answers is told by others
    return text
