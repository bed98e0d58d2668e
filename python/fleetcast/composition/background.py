"""Work next to the requests: a thread that lives as long as a block."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.errors import OperatorError, StoreDamaged, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

logger = logging.getLogger(__name__)


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


def repeating(
    name: str,
    do: Callable[[], object],
    seconds: float,
    failure: str,
    *,
    at_end: bool = False,
    patience_seconds: float | None = None,
) -> AbstractContextManager[None]:
    """Calls `do` in a thread every `seconds` until the end of the block; `at_end` once more then.

    An error is logged under the words of `failure`, and the next call comes as usual.
    """

    def work(stopped: threading.Event) -> None:
        while not stopped.wait(seconds):
            attempt(failure, do)
        if at_end:
            attempt(failure, do)

    return background(name, work, patience_seconds=patience_seconds)


def attempt(failure: str, do: Callable[[], object]) -> None:
    """Calls `do`, and logs its error under the words of `failure`."""
    try:
        do()
    except StoreDamaged as error:
        logger.error(failure, extra={"problem": str(error)})  # noqa: TRY400 - message says all
    except (StoreError, ControlStoreUnavailable, OperatorError, OSError, ValueError) as error:
        logger.warning(failure, extra={"problem": str(error)})
    except BaseException:  # a panic of the engine is no Exception, and must not end the work
        logger.exception(failure)
