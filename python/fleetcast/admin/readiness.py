"""Readiness of this machine for requests, as `/readyz` reports it.

A tenant whose upkeep fails is named, but the machine stays ready. The other tenants are served, and
they would suffer if the machine got no requests. If upkeep makes no progress for any tenant, the
machine is not ready: its stores would grow and slow down until an operator acts.
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
    from fleetcast.surface.readiness import Probe

_PROBE_SECONDS = 2.0
_UPKEEP_FAILURES_MAX = 2  # in a row: a child that was killed once is started again at once
_UPKEEP_STALLED_SECONDS = 600.0  # longer than any single compaction
_TENANTS_SHOWN_MAX = 100
_TENANT = re.compile(r'\{tenant="([^"]*)"\}')


class Readiness:
    """`surfaces` must serve; `probes` are their dependencies by name."""

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
        """The progress of upkeep as read last, and the time since when it has not changed."""

    def look(self) -> tuple[bool, dict[str, object]]:
        """Returns true if all that the tenants share is well, and the document with the checks."""
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
        """Returns true if the maintenance process lives, stays alive, and makes progress."""
        if totals[sample("fleetcast_child_failures", child="maintenance")] > _UPKEEP_FAILURES_MAX:
            return False
        if totals[sample("fleetcast_child_silent", child="maintenance")]:
            return False
        if not totals[sample("fleetcast_processes_ready", surface="maintenance")]:
            # A process that has ended is about to be started again, though its end may not be
            # counted yet. At the start of the service, upkeep is not well before the process
            # serves.
            return self._upkeep_began
        self._upkeep_began = True
        progress = totals[sample("fleetcast_upkeep_progress_time_seconds")]
        if progress != self._progress[0]:
            self._progress = (progress, time.monotonic())
        return time.monotonic() - self._progress[1] < _UPKEEP_STALLED_SECONDS


def _failing_upkeep(totals: Mapping[str, int]) -> dict[str, object]:
    """Counts the tenants whose upkeep fails, and names the tenants that have failed longest."""
    begins = {}
    for name, since in totals.items():
        if since and name.startswith("fleetcast_upkeep_failing_since_time_seconds{"):
            found = _TENANT.search(name)
            assert found is not None  # noqa: S101 - maintenance sets this label
            begins[found[1]] = since
    longest = sorted(begins.items(), key=lambda item: item[1])[:_TENANTS_SHOWN_MAX]
    failing = [
        {"tenant": tenant, "since": datetime.fromtimestamp(since, UTC).isoformat()}
        for tenant, since in longest
    ]
    return {"failing_count": len(begins), "failing": failing}
