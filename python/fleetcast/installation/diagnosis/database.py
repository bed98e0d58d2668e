"""Checks of the database that nodes share: replication, clock, nodes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleetcast.errors import StoreError
from fleetcast.installation.diagnosis.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.config.sections import Store
    from fleetcast.engine import Cluster

_CLOCK_WARNING_SECONDS = 0.5
_CLOCK_FAILURE_SECONDS = 5.0
_SILENT_SECONDS = 10.0


def check_database(cluster: Cluster, settings: Store) -> Iterator[Finding]:
    """The primary's replication and clock, and nodes heard of within a day."""
    try:
        before = time.time()
        facts, nodes = cluster.facts(), cluster.nodes()
        now = (before + time.time()) / 2
    except StoreError as error:
        yield Finding.failure("database", str(error), "see that PostgreSQL can be reached")
        return
    if facts is None:
        return
    version, wanted, standbys, size, now_us = facts
    detail = f"PostgreSQL {version}, {size / (1 << 20):.1f} MiB, {standbys} standbys stream"
    if settings.durability == "quorum" and not standbys:
        advice = "start a standby, and set synchronous_standby_names: nothing is acknowledged"
        yield Finding.failure("database", f"{detail} of {wanted!r}", advice)
    elif settings.durability == "quorum" and standbys == 1:
        advice = "start another standby: while this one is down nothing is acknowledged"
        yield Finding.warning("database", detail, advice)
    else:
        yield Finding.good("database", detail)
    yield _clock(now_us / 1e6 - now)
    for name, running, silent in nodes:
        detail = f"version {running}, heard of {silent:.0f} s ago"
        if silent > _SILENT_SECONDS:
            advice = "start it, or forget it: it is not shown a day after it was last heard of"
            yield Finding.warning(f"node {name}", detail, advice)
        else:
            yield Finding.good(f"node {name}", detail)


def _clock(ahead: float) -> Finding:
    detail = f"{abs(ahead):.2f} s {'ahead of' if ahead >= 0 else 'behind'} this node's"
    advice = "set both by a time service: times of records are compared on all nodes"
    if abs(ahead) > _CLOCK_FAILURE_SECONDS:
        return Finding.failure("clock of the database", detail, advice)
    if abs(ahead) > _CLOCK_WARNING_SECONDS:
        return Finding.warning("clock of the database", detail, advice)
    return Finding.good("clock of the database", detail)
