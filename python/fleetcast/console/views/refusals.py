"""Requests that were refused, by code and with the reason, and records rejected, by tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.console.answers import Answer, document
from fleetcast.console.history import STEP_SECONDS
from fleetcast.console.views.reasons import REASONS
from fleetcast.surface.error_codes import ERROR_CODES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.console.services import ConsoleServices

_MINUTE = 60.0
_QUARTER = 900.0
_REJECTED = "rejected "
_TENANTS_MAX = 20


def refusals(services: ConsoleServices) -> Answer:
    """Returns all codes that were ever sent; the table of codes bounds their number.

    In addition, the tenants with the most records that were rejected since the service started.
    """
    history = services.refusals
    _, minute, now = history.since(_MINUTE)
    seconds, quarter, _ = history.since(_QUARTER)
    return document(
        {
            "step_seconds": STEP_SECONDS,
            "quarter_seconds": round(seconds),
            "codes": [
                {
                    **_code(name),
                    "minute": count - minute.get(name, 0),
                    "quarter": count - quarter.get(name, 0),
                    "total": count,
                    "steps": history.steps(name),
                }
                for name, count in sorted(now.items())
            ],
            "rejected": _rejected(services),
        }
    )


def _rejected(services: ConsoleServices) -> Sequence[Mapping[str, object]]:
    _, before, now = services.records.since(_MINUTE)
    found = [(name, count) for name, count in now.items() if name.startswith(_REJECTED) and count]
    return [
        {
            "tenant": name.removeprefix(_REJECTED),
            "late": count - before.get(name, 0),
            "total": count,
        }
        for name, count in sorted(found, key=lambda item: -item[1])[:_TENANTS_MAX]
    ]


def refused_of_late(services: ConsoleServices) -> list[Mapping[str, object]]:
    """Returns the codes of the last quarter of an hour, the most frequent first."""
    _, before, now = services.refusals.since(_QUARTER)
    grown = {name: count - before.get(name, 0) for name, count in now.items()}
    return [
        {**_code(name), "quarter": count}
        for name, count in sorted(grown.items(), key=lambda item: -item[1])
        if count
    ]


def _code(name: str) -> Mapping[str, object]:
    surface, _, code = name.partition(" ")
    known = ERROR_CODES.get(code)
    status = None if known is None else known.http if surface == "http" else known.grpc
    return {
        "surface": surface,
        "code": code,
        "status": status or None,
        "reason": REASONS.get(code, ""),
    }
