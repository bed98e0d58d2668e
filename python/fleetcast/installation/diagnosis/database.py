"""Checks of shared parts: the database, its replication and clock, objects, other nodes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleetcast.errors import StoreError
from fleetcast.installation.cluster_node import ALIVE_SECONDS, CLOCK_SECONDS_MAX
from fleetcast.installation.diagnosis.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.config.sections import Store
    from fleetcast.engine import Cluster

_CLOCK_WARNING_SECONDS = 0.5
_VERSION_MIN = 15
_SESSIONS_SHARE = 0.9


def check_database(cluster: Cluster, settings: Store) -> Iterator[Finding]:
    """Checks version, replication, clock and rights, and the nodes heard of within a day."""
    try:
        yield from _servers(cluster.servers())
        before = time.time()
        facts, nodes = cluster.facts(), cluster.nodes()
        now = (before + time.time()) / 2
        rights, damaged = cluster.permissions(), cluster.damaged()
    except StoreError as error:
        yield Finding.failure("database", str(error), "see that PostgreSQL can be reached")
        return
    if facts is None:
        return
    version, wanted, standbys, size, now_us, sessions, keeps_collation, _ = facts
    detail = f"PostgreSQL {version}, {size / (1 << 20):.1f} MiB, {standbys} standbys stream"
    if int(version.partition(".")[0]) < _VERSION_MIN:
        advice = f"upgrade it: fleetcast needs {_VERSION_MIN} or newer"
        yield Finding.failure("database", detail, advice)
    elif settings.durability == "quorum" and not standbys:
        advice = "start a standby, and set synchronous_standby_names: nothing is acknowledged"
        yield Finding.failure("database", f"{detail} of {wanted!r}", advice)
    elif settings.durability == "quorum" and standbys == 1:
        advice = "start another standby: while this one is down nothing is acknowledged"
        yield Finding.warning("database", detail, advice)
    else:
        yield Finding.good("database", detail)
    yield _sessions(*sessions)
    if not keeps_collation:
        detail = "the system sorts texts otherwise than when the database was made"
        advice = "REINDEX DATABASE, then ALTER DATABASE ... REFRESH COLLATION VERSION"
        yield Finding.warning("collation of the database", detail, advice)
    for plane in damaged:
        detail = "the object store has lost a segment; its rows stay in the log of the database"
        advice = "put the objects back from a copy of the bucket, or restore the tenant"
        yield Finding.failure(f"objects of the account {plane}", detail, advice)
    yield _rights(rights)
    yield _clock(now_us / 1e6 - now)
    for _, name, running, silent in nodes:
        detail = f"version {running}, heard of {silent:.0f} s ago"
        if silent > ALIVE_SECONDS:
            advice = "start it, or forget it: it is not shown a day after it was last heard of"
            yield Finding.warning(f"node {name}", detail, advice)
        else:
            yield Finding.good(f"node {name}", detail)


def check_objects(cluster: Cluster) -> Iterator[Finding]:
    """Writes an object, reads it, and deletes it. Looks for the marker of the installation."""
    advice = (
        "see that store.objects names a bucket that is there, and that its key may put, get and"
        " delete objects in it"
    )
    try:
        is_listed = cluster.probe_objects()
        cluster.reach_objects()
    except (StoreError, ValueError) as error:
        yield Finding.failure("objects", str(error), advice)
        return
    listed = "and listed" if is_listed else "but not listed, which nothing needs"
    yield Finding.good("objects", f"a probe was written, read and deleted, {listed}")


def _servers(servers: list[tuple[str, int | None]]) -> Iterator[Finding]:
    """Checks that there is one primary, and that each server answers."""
    newest = max((timeline or 0 for _, timeline in servers), default=0)
    for name, timeline in servers:
        check = f"server {name}"
        if timeline is None:
            yield Finding.warning(check, "no answer", "start it: it can take over no primary")
        elif timeline == 0:
            yield Finding.good(check, "a standby")
        elif timeline < newest:
            detail = f"a primary of timeline {timeline}, which another has replaced ({newest})"
            advice = "end it, and make it a standby from a new base backup"
            yield Finding.failure(check, detail, advice)
        else:
            yield Finding.good(check, f"the primary, of timeline {timeline}")


def _sessions(sessions: int, sessions_max: int) -> Finding:
    detail = f"{sessions} of at most {sessions_max}"
    if sessions > _SESSIONS_SHARE * sessions_max:
        advice = "raise max_connections, or lower store.connections on the nodes"
        return Finding.warning("sessions of the database", detail, advice)
    return Finding.good("sessions of the database", detail)


def _rights(rights: tuple[bool, bool, bool]) -> Finding:
    """Checks the rights that `Cluster.permissions` returns."""
    makes_tables, owns_tables, sees_replication = rights
    check = "rights in the database"
    if not makes_tables:
        advice = "GRANT CREATE ON SCHEMA to the role of store.database, or make it the owner"
        return Finding.failure(check, "the role may not make tables: each hour is one", advice)
    if not owns_tables:
        advice = "ALTER TABLE ... OWNER TO the role of store.database, for all of fleetcast's"
        return Finding.failure(check, "the role does not own all tables", advice)
    if not sees_replication:
        advice = "GRANT pg_monitor to the role of store.database"
        return Finding.warning(check, "the role does not see which standbys stream", advice)
    return Finding.good(check, "the role makes and owns its tables, and sees replication")


def _clock(ahead: float) -> Finding:
    detail = f"{abs(ahead):.2f} s {'ahead of' if ahead >= 0 else 'behind'} this node's"
    advice = "set both by a time service: a node that is 5 s off is not ready"
    if abs(ahead) > CLOCK_SECONDS_MAX:
        return Finding.failure("clock of the database", detail, advice)
    if abs(ahead) > _CLOCK_WARNING_SECONDS:
        return Finding.warning("clock of the database", detail, advice)
    return Finding.good("clock of the database", detail)
