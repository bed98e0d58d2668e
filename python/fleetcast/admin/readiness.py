"""Readiness of this machine for requests, as `/readyz` gives it.

A tenant whose upkeep fails is named and changes nothing: the others are served, and they would be
hurt if the machine got no requests. Upkeep that makes no progress for anyone does change it, as
stores would grow and slow down until somebody looks.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fleetcast.metrics import sample
from fleetcast.surface.readiness import Dependencies, well

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.metrics import Totals
    from fleetcast.surface.services import Probe

_PROBE_SECONDS = 2.0
_UPKEEP_FAILURES_MAX = 2  # in a row; a child that was killed once is back at once
_UPKEEP_STALLED_SECONDS = 600.0  # longer than any one compaction
_TENANTS_SHOWN_MAX = 100
_TENANT = re.compile(r'\{tenant="([^"]*)"\}')


class Readiness:
    """`surfaces` are those that must serve, `probes` what they need, by name."""

    def __init__(
        self,
        totals: Totals,
        surfaces: tuple[str, ...],
        probes: Mapping[str, Probe],
    ) -> None:
        self._totals = totals
        self._surfaces = surfaces
        self._dependencies = Dependencies(probes, 2 * len(probes) + 2)
        self._upkeep_began = False
        self._progress = (-1, time.monotonic())
        """The progress of upkeep as last read, and since when it has been so."""

    def look(self) -> tuple[bool, dict[str, object]]:
        """True where everything is well that all tenants share, and the document that says so."""
        totals = self._totals.all()
        checks: dict[str, dict[str, object]] = {
            surface: {
                "ok": totals[sample("fleetcast_processes_ready", surface=surface)] > 0
                and not totals[sample("fleetcast_child_silent", child=surface)]
            }
            for surface in self._surfaces
        }
        probed = well(self._dependencies.ask(), _PROBE_SECONDS)
        checks |= {name: {"ok": ok} for name, ok in probed.items()}
        checks["upkeep"] = {"ok": self._upkeep_goes_on(totals), **_failing_upkeep(totals)}
        ready = all(check["ok"] for check in checks.values())
        return ready, {"status": "ok" if ready else "degraded", "checks": checks}

    def _upkeep_goes_on(self, totals: Mapping[str, int]) -> bool:
        """True where the maintenance process lives, does not end again and again, and gets on."""
        if totals[sample("fleetcast_child_failures", child="maintenance")] > _UPKEEP_FAILURES_MAX:
            return False
        if totals[sample("fleetcast_child_silent", child="maintenance")]:
            return False
        if not totals[sample("fleetcast_processes_ready", surface="maintenance")]:
            # One that has ended is about to be started again, though its end may not be counted
            # yet; at the start of the service, nothing is well before it serves.
            return self._upkeep_began
        self._upkeep_began = True
        progress = totals[sample("fleetcast_upkeep_progress_time_seconds")]
        if progress != self._progress[0]:
            self._progress = (progress, time.monotonic())
        return time.monotonic() - self._progress[1] < _UPKEEP_STALLED_SECONDS


def _failing_upkeep(totals: Mapping[str, int]) -> dict[str, object]:
    """The number of tenants whose upkeep fails, and since when: those that fail longest."""
    begins = {}
    for name, since in totals.items():
        if since and name.startswith("fleetcast_upkeep_failing_since_time_seconds{"):
            found = _TENANT.search(name)
            assert found is not None  # noqa: S101 - maintenance labels it so
            begins[found[1]] = since
    longest = sorted(begins.items(), key=lambda item: item[1])[:_TENANTS_SHOWN_MAX]
    failing = [
        {"tenant": tenant, "since": datetime.fromtimestamp(since, UTC).isoformat()}
        for tenant, since in longest
    ]
    return {"failing_count": len(begins), "failing": failing}
