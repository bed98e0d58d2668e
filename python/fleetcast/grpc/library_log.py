"""Log lines of grpcio and asyncio, without what clients have sent.

Both put bytes of a client into lines and tracebacks: grpcio a key that is no UTF-8, asyncio the
path that ended a task. Such a line keeps what the library says itself, and the exception's name.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fleetcast.log_lines import refusal_is_logged

if TYPE_CHECKING:
    import asyncio

_LIBRARY = "grpc"
_SENDER = "unknown"  # the library does not say whose call it is

logger = logging.getLogger(__name__)


def keep_metadata_out_of_logs() -> None:
    """Has this process log what grpcio says without its arguments, some lines a second at most."""
    library = logging.getLogger(_LIBRARY)
    library.propagate = False
    library.addHandler(_Repeater())


def log_task_failure(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Logs an exception that nobody awaited by its name; asyncio's own handler gives its text."""
    logger.error("%s: %s", context.get("message"), type(context.get("exception")).__name__)


class _Repeater(logging.Handler):
    """Says in our name what a library has said."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno <= logging.INFO or not refusal_is_logged(_SENDER):
            return
        problem = record.exc_info[0] if record.exc_info else None
        logger.log(
            record.levelno,
            "grpcio says: %s (%s)",
            record.msg,
            "no exception" if problem is None else problem.__name__,
        )
