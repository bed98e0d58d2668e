"""The choice between the two texts of the metrics, by the header `Accept` of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.metrics.exposition import OPEN_METRICS_TYPE, TEXT_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable


def accepted_type(accept: str) -> str:
    """Returns the type of the text for a request's `Accept`.

    OpenMetrics is for clients that name it with no less weight than plain text. Example:
    `application/openmetrics-text;version=1.0.0,text/plain;q=0.5`.
    """
    offers = [_offer(part) for part in accept.lower().split(",")]
    is_open = 0 < _weight(offers, OPEN_METRICS_TYPE) >= _weight(offers, TEXT_TYPE)
    return OPEN_METRICS_TYPE if is_open else TEXT_TYPE


def _offer(part: str) -> tuple[str, str, float]:
    """Returns name, version and weight of a part of `Accept`."""
    name, *given = (text.strip() for text in part.split(";"))
    parameters = dict(text.partition("=")[::2] for text in given)
    try:
        weight = float(parameters.get("q", "1"))
    except ValueError:
        weight = 0.0
    return name, parameters.get("version", ""), weight


def _weight(offers: Iterable[tuple[str, str, float]], kind: str) -> float:
    """Returns the weight that a client gives to a type of ours; 0 if the client names another."""
    known, version, _ = _offer(kind)
    found = (
        weight for name, asked, weight in offers if (name, asked or version) == (known, version)
    )
    return max(found, default=0.0)
