"""The paths of the adapter listener, and the words of the answers on each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetcast.adapters import influx, otlp, prometheus
from fleetcast.http.routes import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleetcast.http.answers import ErrorResponse


@dataclass(frozen=True, kw_only=True)
class AdapterRoute(Route):
    """A path of another protocol."""

    codings: tuple[str, ...] = ("identity", "gzip")
    """Content codings that a body may have; without `identity`, one it must have."""
    media_types: tuple[str, ...] = ()
    """Content types that a body may have; empty for any."""
    message: str | None = None
    """Protobuf message of a body, which the content type may name by `proto`."""
    error: Callable[[ErrorResponse], tuple[str, bytes]]
    """Content type and body of an answer that tells of an error."""


def _write(
    error: Callable[[ErrorResponse], tuple[str, bytes]],
    codings: tuple[str, ...] = ("identity", "gzip"),
    media_types: tuple[str, ...] = (),
    message: str | None = None,
) -> AdapterRoute:
    return AdapterRoute(
        methods=("POST",),
        authenticated=True,
        scope="telemetry:write",
        ingest=True,
        error=error,
        codings=codings,
        media_types=media_types,
        message=message,
    )


ROUTES: Mapping[str, AdapterRoute] = {
    "/ping": AdapterRoute(methods=("GET",), error=influx.error_v1),
    "/health": AdapterRoute(methods=("GET",), error=influx.error_v2),
    "/write": _write(influx.error_v1),
    "/api/v2/write": _write(influx.error_v2),
    "/api/v3/write_lp": _write(influx.error_v3),
    "/api/v1/write": _write(prometheus.error, ("snappy",), (otlp.MEDIA_TYPE,), prometheus.MESSAGE),
    "/v1/metrics": _write(otlp.error, media_types=(otlp.MEDIA_TYPE,)),
}
"""Every path of the adapter listener; all others are 404."""
