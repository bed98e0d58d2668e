"""The look for changes costs the database as much for many tenants as for one."""

from __future__ import annotations

import uuid
from functools import partial

from fleetcast.cluster.engine import PlaneStates
from fleetcast.engine import Cluster, Glance, Planes, Tenant, encode_records
from fleetcast.maintenance.upkeep import Moment, Upkeep
from tests.clock import Clock

from .statements import logged

KEY = bytes(32)
COUNT = 50
AFTER_SECONDS = 3600
ROW = {
    "measurement": "link",
    "time": "2026-01-01T00:00:00Z",
    "tags": {"entity_id": "e"},
    "fields": {"n": 1.0},
}


def tenant() -> Tenant:
    return Tenant(
        name="acme",
        account_id=str(uuid.uuid4()),
        plan="standard",
        live_ingest=True,
        retention_seconds=None,
        disabled=False,
        created_at=0,
    )


def test_upkeep_asks_for_all_tenants_at_once_and_for_each_that_has_changed(
    database_url: str,
) -> None:
    tenants, clock = [tenant() for _ in range(COUNT)], Clock()
    with logged() as log:
        cluster = Cluster(database_url)
        cluster.install("test", b"check")
        planes, states = Planes.in_cluster(cluster), PlaneStates(cluster.plane_states, clock)
        upkeeps = []
        for each in tenants:
            planes.create(each.account_id, KEY)
            counts = partial(planes.counts, each.account_id)
            glance = Glance(partial(states.of, each.account_id), counts)
            upkeeps.append(Upkeep(glance, each))

        def look() -> tuple[list[bool], int]:
            """Which are due, and the number of statements that tell."""
            log.news()
            at = Moment(clock.now, clock.now)
            due = [
                upkeep.is_due(each, at, AFTER_SECONDS)
                for each, upkeep in zip(tenants, upkeeps, strict=True)
            ]
            return due, len(log.without_checks(log.news()))

        none = [False] * COUNT
        assert look() == (none, 1 + COUNT)
        for _ in range(3):
            clock.now += 15
            assert look() == (none, 1)
        assert look() == (none, 0)
        planes.open(tenants[7].account_id, KEY, "acme").write_json(encode_records([ROW]))
        clock.now += 15
        assert look() == (none, 2)
        clock.now += AFTER_SECONDS
        assert look() == ([number == 7 for number in range(COUNT)], 1)
