"""Logs: one JSON object a line on stderr, from structlog and from the standard library alike."""

from __future__ import annotations

import contextlib
import json
import logging.config
import os
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from structlog.typing import EventDict

_STDERR = 2
_WORDS_MAX = 1024  # words of the access log whose JSON is kept
_ENCODE = json.JSONEncoder(separators=(",", ":"), default=str).encode

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
    global _process  # noqa: PLW0603
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


class Served(NamedTuple):
    """One line of the access log: a request that has its answer."""

    request_id: str
    method: str
    route: str
    status: int | str
    error: str | None
    tenant: str | None
    key_id: str | None
    client: str
    seconds: float
    bytes_in: int
    bytes_out: int
    process: str

    def __str__(self) -> str:
        return (
            f'{{"event":"request","request_id":"{self.request_id}","method":{_json(self.method)},'
            f'"route":{_json(self.route)},"status":{_json(self.status)},'
            f'"error":{_json(self.error)},"tenant":{_json(self.tenant)},'
            f'"key_id":{_json(self.key_id)},"client":{_json(self.client)},'
            f'"duration_ms":{self.seconds * 1e3:.3f},"bytes_in":{self.bytes_in},'
            f'"bytes_out":{self.bytes_out},"level":"info","logger":"fleetcast.access",'
            f'"process":"{self.process}","timestamp":"{timestamp()}"}}'
        )


def write_served(served: Served) -> None:
    """Writes one line of the access log, in a twentieth of the time that a logger takes."""
    _write(str(served))


def write_line(document: Mapping[str, object]) -> None:
    """Writes one line as it is."""
    _write(_ENCODE(document))


def timestamp() -> str:
    """The present instant, as all log lines spell it."""
    second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_second(second)}.{nanoseconds // 1000:06}Z"


def _write(line: str) -> None:
    # One system call, so lines of several processes stay whole.
    with contextlib.suppress(OSError):
        os.write(_STDERR, f"{line}\n".encode())


@lru_cache(_WORDS_MAX)
def _json(word: str | int | None) -> str:
    return json.dumps(word)


@lru_cache(1)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def audit(event: str, **details: object) -> None:
    """A line about who may do what: failed authentication, changed keys and tenants."""
    structlog.get_logger("fleetcast.audit").info(event, audit=True, **details)
