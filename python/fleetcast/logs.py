"""Logs: one JSON object a line on stderr, from structlog and from the standard library alike."""

from __future__ import annotations

import logging.config
import sys
import threading
from typing import TYPE_CHECKING, Any

import structlog

from fleetcast.engine import refusal_is_logged
from fleetcast.log_lines import begin_log, process_name

if TYPE_CHECKING:
    from types import TracebackType

    from structlog.typing import EventDict


def _add_process(_logger: object, _method: str, line: EventDict) -> EventDict:
    line["process"] = process_name()
    return line


_COMMON: tuple[Any, ...] = (
    structlog.contextvars.merge_contextvars,
    _add_process,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
)


def configure_logs(process: str) -> None:
    """Sends all log lines of this process to stderr; `process` names the process in each line."""
    logging.config.dictConfig(logging_config())
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda uncaught: _log_uncaught(
        uncaught.exc_type, uncaught.exc_value, uncaught.exc_traceback
    )
    sys.unraisablehook = lambda uncaught: _log_uncaught(
        uncaught.exc_type, uncaught.exc_value, uncaught.exc_traceback
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_COMMON,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    # The process is no context variable, because context variables end with their thread.
    begin_log(process)


def _log_uncaught(
    kind: type[BaseException],
    error: BaseException | None,
    traceback: TracebackType | None,
) -> None:
    """Logs an uncaught exception. Python would write it as lines that are no JSON."""
    if issubclass(kind, SystemExit):  # a thread may end this way without a log line
        return
    found = (kind, error or kind(), traceback)
    logging.getLogger("fleetcast").critical("nobody caught an exception", exc_info=found)


def logging_config() -> dict[str, Any]:
    """The standard library's side, also for libraries that set up logging themselves."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": list(_COMMON),
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.JSONRenderer(),
                ],
            }
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "json",
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            "gunicorn.error": {"handlers": [], "propagate": True, "level": "WARNING"},
            "gunicorn.access": {"handlers": [], "propagate": False},
        },
    }


def audit(event: str, **details: object) -> None:
    """Logs who may do what: failed authentication, changed keys and tenants."""
    structlog.get_logger("fleetcast.audit").info(event, audit=True, **details)


def audit_refusal(event: str, *, client: str, **details: object) -> None:
    """Logs as `audit`, about a client that was refused, up to the client's lines a second."""
    if refusal_is_logged(client):
        audit(event, client=client, **details)
