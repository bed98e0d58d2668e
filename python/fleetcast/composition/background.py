"""Work next to the requests: a thread that lives as long as a block."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def background(
    name: str, work: Callable[[threading.Event], None], *, patience_seconds: float | None = None
) -> Iterator[None]:
    """Runs `work` in a thread until the end of the block.

    `work` must return soon after its event is set. The end of the block waits for the thread, at
    most `patience_seconds` if they are given.
    """
    stopped = threading.Event()
    thread = threading.Thread(target=work, args=(stopped,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(patience_seconds)
