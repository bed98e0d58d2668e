"""Logs: one JSON object a line on stderr, from structlog and from the standard library alike."""

from __future__ import annotations

import logging.config
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from structlog.typing import EventDict

_process = ""


def _add_process(_logger: object, _method: str, line: EventDict) -> EventDict:
    line["process"] = _process
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
    """Sends all log lines of this process to stderr; `process` names it in each."""
    logging.config.dictConfig(logging_config())
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
    # No context variable: those end with their thread.
    global _process  # noqa: PLW0603 - set once, by the process itself
    _process = process


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
    """A line about who may do what: failed authentication, changed keys and tenants."""
    structlog.get_logger("fleetcast.audit").info(event, audit=True, **details)
