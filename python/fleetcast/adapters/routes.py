"""Bodies of errors on the paths of the adapter listener."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.adapters import influx, otlp, prometheus, questions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleetcast.http.answers import ErrorResponse

ERRORS: Mapping[str, Callable[[ErrorResponse], tuple[str, bytes]]] = {
    "/ping": influx.error_v1,
    "/health": influx.error_v2,
    "/write": influx.error_v1,
    "/api/v2/write": influx.error_v2,
    "/api/v3/write_lp": influx.error_v3,
    "/api/v1/write": prometheus.error,
    "/v1/metrics": otlp.error,
    **dict.fromkeys((*questions.PATHS, questions.READ_PATH), questions.error),
}
"""Path to the function that makes the content type and the body of an error."""
