"""Parts that are loaded by the first request that needs them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def loaded_once(load: Callable[[], T]) -> Callable[[], T]:
    """A function with the result of `load`, which its first call makes while others wait for it.

    The next call tries again if `load` raises.
    """
    lock = threading.Lock()
    loaded: list[T] = []

    def get() -> T:
        with lock:
            if not loaded:
                loaded.append(load())
            return loaded[0]

    return get
