"""Closing of planes that a process no longer needs: idle planes, and planes of deleted tenants."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fleetcast.composition.background import background

if TYPE_CHECKING:
    import threading
    from contextlib import AbstractContextManager

    from fleetcast.engine import Engine

_ROUND_SECONDS = 0.5  # a deleted tenant's key leaves memory within a second

logger = logging.getLogger(__name__)


def closing_unused(engine: Engine) -> AbstractContextManager[None]:
    """Closes unused planes until the end of the block."""

    def run(stopped: threading.Event) -> None:
        while not stopped.wait(_ROUND_SECONDS):
            try:
                engine.close_unused()
            except BaseException:  # a panic of the engine is no Exception, and must not end this
                logger.exception("planes were not closed")

    return background("planes", run)
