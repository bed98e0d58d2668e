"""Progress bars for long work. They show only on a terminal, on standard error."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import click

from fleetcast.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleetcast.engine import Glance

R = TypeVar("R")

_LOOK_SECONDS = 0.2


class Progress:
    """A bar, and the steps that fill it."""

    def __init__(self, advance: Callable[[int], None] | None) -> None:
        self._advance = advance

    def step(self, work: Callable[[], R], size: int, done: Callable[[], int]) -> R:
        """Runs `work`, which fills `size` of the bar, and returns its result.

        The work runs in a thread, and `done` says how far it is. Without a terminal the work runs
        here and `done` is not called.
        """
        if self._advance is None:
            return work()
        shown = 0
        future = _started(work)
        while wait_for([future], _LOOK_SECONDS).not_done:
            now = max(min(done(), size), shown)
            self._advance(now - shown)
            shown = now
        self._advance(size - shown)
        return future.result()


@contextmanager
def progress(label: str, length: int) -> Iterator[Progress]:
    """A bar of `length`, shown if standard error is a terminal."""
    hidden = not sys.stderr.isatty()
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=hidden) as bar:
        yield Progress(None if hidden else bar.update)


def _started(work: Callable[[], R]) -> Future[R]:
    """Starts the work in a daemon thread, so that Ctrl-C can end the command during the work."""
    future: Future[R] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - `result` raises it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


@contextmanager
def rate(label: str, length: int, done: Callable[[], int]) -> Iterator[Callable[[int], None]]:
    """A bar of `length` with time left and the rate of `done`, a number of records.

    Gives a function that advances the bar. If the length is 0, as of a pipe, no time left is shown.
    """
    began = time.monotonic()

    def speed(_: object) -> str:
        return f"{done() / max(time.monotonic() - began, 1e-3):,.0f} records/s"

    hidden = not sys.stderr.isatty()
    with click.progressbar(
        length=max(length, 1),
        label=label,
        file=sys.stderr,
        hidden=hidden,
        show_eta=length > 0,
        show_percent=length > 0,
        item_show_func=speed,
        update_min_steps=max(length // 1000, 1),
    ) as bar:
        yield (lambda _: None) if hidden else (lambda size: bar.update(size, size))


def reads() -> Callable[[], int]:
    """Returns a counter of the bytes read by this process from now on; 0 if unknown."""
    start = _bytes_read()
    return lambda: _bytes_read() - start


def _bytes_read() -> int:
    try:
        return int(Path("/proc/self/io").read_text().split()[1])
    except OSError:
        return 0


def bytes_of(glance: Glance, kind: Literal["log_bytes", "segment_bytes"]) -> int:
    """Returns the bytes of a store's log or segments; 0 if the store cannot be read."""
    try:
        return int(getattr(glance.counts(), kind))
    except StoreError:
        return 0
