"""Check for stored records that no read shows."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from fleetcast.installation.diagnosis.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

_COUNTED = re.compile(
    r'^fleetcast_unreadable_records_total\{tenant="([^"]*)",reason="([^"]*)"\} ([1-9][0-9]*)$',
    re.MULTILINE,
)
_ADVICE = "the log names keys and measurements; adapters.toml maps names, records need entity_id"


def check_unreadable(metrics: str | None) -> Iterator[Finding]:
    """Yields tenants with such records since the service started; none if it does not run."""
    counts: Counter[tuple[str, str]] = Counter()
    for tenant, reason, count in _COUNTED.findall(metrics or ""):
        counts[tenant, reason] += int(count)
    for (tenant, reason), count in sorted(counts.items()):
        why = "no entity_id" if reason == "no_entity" else "a measurement that is not served"
        detail = f"{count} records since the start have {why}: no read shows them"
        yield Finding.warning(f"records of {tenant}", detail, _ADVICE)
