"""Parts that the first request that needs them loads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def loaded_once(load: Callable[[], T]) -> Callable[[], T]:
    """Returns a function with the result of `load`. The first call loads while other calls wait.

    If `load` raises, the next call tries again.
    """
    lock = threading.Lock()
    loaded: list[T] = []

    def get() -> T:
        with lock:
            if not loaded:
                loaded.append(load())
            return loaded[0]

    return get
