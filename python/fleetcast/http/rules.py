"""The rules of a listener, made from the settings. The engine decides by these rules."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from http import HTTPStatus
from ipaddress import ip_network
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.engine import LimiterFile
from fleetcast.forecast.families import ANSWERED
from fleetcast.surface.error_codes import ERROR_CODES
from fleetcast.surface.planes import write_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from fleetcast.config import Settings
    from fleetcast.config.sections import Limits
    from fleetcast.engine import ForecastFamily, KeptForecasts, NameMapping
    from fleetcast.metrics import Counters

_LOG_SECONDS = 10.0
# A client may cause many of these refusals, so the engine answers them.
_FREQUENT_CODES = (
    *("rate_limited", "auth_lockout", "auth_failed", "tenant_unknown", "tenant_disabled"),
    *("insufficient_scope", "live_ingest_not_entitled"),
    *("ingest_buffer_full", "telemetry_unavailable"),
)

logger = logging.getLogger(__name__)


class ErrorRow(NamedTuple):
    """An error code's row, as the engine answers with it."""

    status: int
    line: str
    """Status and reason. Example: `429 Too Many Requests`."""
    fields: list[tuple[str, str]]
    retry_seconds: int | None


class ListenerRules(NamedTuple):
    """Everything that `Service` takes from the settings."""

    settings: Settings
    trusted_proxies: list[str]
    exempt: list[str]
    rates: LimiterFile
    """Counts requests, except those from `exempt`."""
    lockouts: LimiterFile
    """Counts bad keys."""
    body_bytes_max: int
    write_limits: dict[str, object]
    errors: Mapping[str, ErrorRow] | None = None
    """Codes whose refusals the engine answers. Answers for other protocols differ."""
    simulates: bool = False
    families: Sequence[ForecastFamily] = (*ANSWERED.values(),)
    kept: KeptForecasts | None = None
    """Forecasts that were computed earlier; `None` if none are served."""
    mapping: NameMapping | None = None
    """Names of other protocols. Only the listener for other protocols has a mapping."""


def public_rules(
    settings: Settings,
    limiter: Path,
    counters: Counters,
    *,
    simulates: bool = False,
    kept: KeptForecasts | None = None,
) -> ListenerRules:
    """Rules of the public listener, which counts clients in the file `limiter`."""
    file, limits = _limiter_file(limiter, settings.limits, _Faults(counters)), settings.limits
    rules = _rules(settings, file, file, limits.body_bytes_max, limits.batch_records_max)
    return rules._replace(errors=_errors(), simulates=simulates, kept=kept)


def adapter_rules(
    settings: Settings,
    limiter: Path,
    own_limiter: Path,
    counters: Counters,
    mapping: NameMapping,
    *,
    kept: KeptForecasts | None = None,
) -> ListenerRules:
    """Rules of the listener for other protocols.

    This listener counts requests in the file `own_limiter`, and shares the lockout of all
    listeners.
    """
    adapters, faults = settings.adapters, _Faults(counters)
    own = replace(settings.limits, requests_per_minute=adapters.requests_per_minute)
    rates = _limiter_file(own_limiter, own, faults)
    lockouts = _limiter_file(limiter, settings.limits, faults)
    rules = _rules(settings, rates, lockouts, adapters.body_bytes_max, adapters.records_max)
    return rules._replace(mapping=mapping, kept=kept)


def _rules(
    settings: Settings,
    rates: LimiterFile,
    lockouts: LimiterFile,
    body_bytes_max: int,
    records_max: int,
) -> ListenerRules:
    trusted, exempt = _networks(settings.http.trusted_proxies), _networks(settings.limits.exempt)
    bounds = write_limits(settings, records_max)
    return ListenerRules(settings, trusted, exempt, rates, lockouts, body_bytes_max, bounds)


def _errors() -> dict[str, ErrorRow]:
    rows = {}
    for code in _FREQUENT_CODES:
        row = ERROR_CODES[code]
        fields = [(name.lower(), value) for name, value in row.headers if value is not None]
        line = f"{row.http} {HTTPStatus(row.http).phrase}"
        rows[code] = ErrorRow(row.http, line, fields, row.retry_seconds)
    return rows


def _networks(texts: Sequence[str]) -> list[str]:
    return [str(ip_network(text, strict=False)) for text in texts]


def _limiter_file(path: Path, limits: Limits, on_fault: Callable[[str], None]) -> LimiterFile:
    return LimiterFile(
        path,
        on_fault,
        requests_per_minute=limits.requests_per_minute,
        lockout_failures=limits.lockout_failures,
        lockout_window_seconds=limits.lockout_window_seconds,
        lockout_seconds=limits.lockout_seconds,
    )


class _Faults:
    """Counts faults of limiter files. Logs one line about them every ten seconds at most."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._failed_open = counters.counter("fleetcast_limiter_failed_open_total")
        self._logged_at: float | None = None

    def __call__(self, fault: str) -> None:
        self._counters.add(self._failed_open)
        now = time.monotonic()
        if self._logged_at is None or now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            logger.error("rate limit and lockout are off: %s", fault)
