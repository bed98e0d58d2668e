"""Overview: records over the day, the largest tenants, refusals, forecasts, the disk, findings."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from fleetcast.console.views.refusals import refused_of_late
from fleetcast.surface.answers import Answer, document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.console.services import ConsoleServices

_TENANTS_SHOWN = 6
_REFUSALS_SHOWN = 6
_RATE_SECONDS = 30.0
_DAY_SECONDS = 86_400
_SCORED = re.compile(
    r'fleetcast_forecast_scored_total\{family="([^"]*)",horizon_minutes="(\d+)"'
    r'.*traffic_role="primary"'
)


def overview(services: ConsoleServices) -> Answer:
    """Returns what an operator looks at first; every list is bounded."""
    looked_at = services.stats()
    stats = {name: found for name, found in looked_at.items() if found is not None}
    largest = sorted(stats.items(), key=lambda item: -item[1].stored_bytes)
    rows = sum(found.stored_rows for found in stats.values())
    stored_bytes = sum(found.stored_bytes for found in stats.values())
    day = services.day
    seconds, before, now = day.since(_DAY_SECONDS)
    written = now["accepted"] - before["accepted"]
    rate_seconds, earlier, latest = services.records.since(_RATE_SECONDS)
    total_bytes, free_bytes = services.disk()
    per_row = stored_bytes / rows if rows else 0.0
    return document(
        {
            "at": time.time(),
            "step_seconds": day.step_seconds,
            "records": {kind: day.steps(kind) for kind in ("accepted", "rejected")},
            "rate": _accepted(latest, earlier) / rate_seconds if rate_seconds >= 1 else None,
            "tenants": len(looked_at),
            "unreadable": len(looked_at) - len(stats),
            "stored_bytes": stored_bytes,
            "largest": [
                {"tenant": name, "bytes": found.stored_bytes, "rows": found.stored_rows}
                for name, found in largest[:_TENANTS_SHOWN]
            ],
            "refusals": refused_of_late(services)[:_REFUSALS_SHOWN],
            "forecasts": _quality(services.totals.all()),
            "disk": {
                "free_bytes": free_bytes,
                "total_bytes": total_bytes,
                "bytes_per_day": written * per_row * _DAY_SECONDS / max(seconds, 1.0),
                "seconds": seconds,
            },
            "findings": services.findings(),
        }
    )


def _accepted(now: Mapping[str, int], before: Mapping[str, int]) -> int:
    return sum(
        count - before.get(name, 0) for name, count in now.items() if name.startswith("accepted ")
    )


def _quality(totals: Mapping[str, int]) -> list[dict[str, object]]:
    """Returns how often the truth lay in the band of the primary releases, by horizon."""
    scored: dict[tuple[str, int], dict[str, int]] = {}
    for name, count in totals.items():
        found = _SCORED.match(name)
        if found is None:
            continue
        sums = scored.setdefault((found[1], int(found[2])), {"scored": 0, "low": 0, "high": 0})
        sums["scored"] += count
        covered = name.replace("_scored_total{", "_covered_total{").removesuffix("}")
        high = "p99" if found[1] == "demand" else "p90"
        sums["low"] += totals.get(f'{covered},quantile="p10"}}', 0)
        sums["high"] += totals.get(f'{covered},quantile="{high}"}}', 0)
    return [
        {
            "family": family,
            "horizon_minutes": horizon,
            "scored": sums["scored"],
            "within": (sums["high"] - sums["low"]) / sums["scored"] if sums["scored"] else None,
        }
        for (family, horizon), sums in sorted(scored.items())
    ]
