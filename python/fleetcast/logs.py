"""Logs: one JSON object a line on stderr, from fleetcast and from its libraries alike."""

from __future__ import annotations

import logging.config
import sys
import threading
from typing import TYPE_CHECKING, Any

from fleetcast.engine import refusal_is_logged
from fleetcast.log_lines import begin_log, encode_line, process_name, timestamp

if TYPE_CHECKING:
    from types import TracebackType


# The attribute of a record that holds details whose names are names of attributes, such as `name`.
_DETAILS = "details"
# Attributes that each record has. All others are details of its event.
_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "taskName"}


class LogLineFormatter(logging.Formatter):
    """Writes a record as one JSON object: the event, its details, and the place it comes from.

    Example: `logger.warning("disk is full", extra={"tenant": "acme"})` in the maintenance process
    is `{"event":"disk is full","tenant":"acme","level":"warning",...,"process":"maintenance"}`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of a record."""
        line: dict[str, object] = {"event": record.getMessage()}
        for name, value in vars(record).items():
            if name == _DETAILS:
                line |= value
            elif name not in _ATTRIBUTES:
                line[name] = value
        line |= {"level": record.levelname.lower(), "logger": record.name}
        line |= {"process": process_name(), "timestamp": timestamp()}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return encode_line(line)


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
        "formatters": {"json": {"()": LogLineFormatter}},
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
    extra = {"audit": True, _DETAILS: details}
    logging.getLogger("fleetcast.audit").info(event, extra=extra)


def audit_refusal(event: str, *, client: str, **details: object) -> None:
    """Logs as `audit`, about a client that was refused, up to the client's lines a second."""
    if refusal_is_logged(client):
        audit(event, client=client, **details)
