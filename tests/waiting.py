"""Waiting for events that announce themselves to nobody."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

PATIENCE_SECONDS = 120.0
"""After so long an event is taken for one that never comes; no test measures by it."""

_LOOK_SECONDS = 0.02


def until(look: Callable[[], T]) -> T:
    """Waits until `look` gives something true, and returns it."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < end, "it does not come to be"
        time.sleep(_LOOK_SECONDS)
    return found
