"""Bars for long work: on a terminal only, and on standard error."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

R = TypeVar("R")

_LOOK_SECONDS = 0.2


class Progress:
    """A bar, and the steps that fill it."""

    def __init__(self, advance: Callable[[int], None] | None) -> None:
        self._advance = advance

    def step(self, work: Callable[[], R], size: int, done: Callable[[], int]) -> R:
        """Result of `work`, which fills `size` of the bar.

        While it goes on, in a thread, `done` says how far it is; without a terminal nobody asks.
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
    """A bar of `length` where standard error is a terminal."""
    hidden = not sys.stderr.isatty()
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=hidden) as bar:
        yield Progress(None if hidden else bar.update)


def _started(work: Callable[[], R]) -> Future[R]:
    """Starts the work. Its thread keeps nobody who interrupts the command from ending it."""
    future: Future[R] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


@contextmanager
def rate(label: str, length: int, done: Callable[[], int]) -> Iterator[Callable[[int], None]]:
    """A bar of `length` with time left and the rate of `done`, a number of records.

    It gives what moves the bar on. Without a length, as of a pipe, there is no time left to show.
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
    """Counts the bytes that this process reads from now on; 0 where the system does not say."""
    start = _bytes_read()
    return lambda: _bytes_read() - start


def _bytes_read() -> int:
    try:
        return int(Path("/proc/self/io").read_text().split()[1])
    except OSError:
        return 0
