"""Planes of an installation of many nodes: a process opens a tenant's plane on its first use."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.engine import Cluster, Engine, Glance, Planes
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleetcast.config.sections import Store
    from fleetcast.engine import MasterKeys, State

_LOOK_SECONDS = 15.0
_OPEN_MAX = 256
_IDLE_SECONDS = 600.0


def open_cluster(settings: Store, cache: Path) -> Cluster:
    """Opens the database and the objects of the settings, without a connection yet.

    Copies of objects go to the folder `cache`. Raises `OperatorError` if an address is malformed,
    or if this build cannot use it.
    """
    try:
        return Cluster(
            settings.database,
            objects=settings.objects,
            cache=cache,
            cache_bytes=settings.cache_bytes,
            connections=settings.connections,
            durability="managed" if settings.durability == "managed" else "quorum",
        )
    except ValueError as error:
        raise OperatorError(str(error)) from None


class PlaneStates:
    """States of all planes in a database. `read` asks for them all, at most every 15 seconds.

    Example: 10,000 idle tenants cost one statement in 15 seconds, and so does one.
    """

    def __init__(
        self,
        read: Callable[[], Mapping[str, tuple[int, int, int]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._clock = clock
        self._found: Mapping[str, tuple[int, int, int]] = {}
        self._due_at = float("-inf")

    def of(self, account_id: str) -> State:
        """Returns the state of a plane, at most 15 seconds old. Raises `StoreError`.

        All planes that are not known, because they are new or gone, have the same state.
        """
        if self._clock() >= self._due_at:
            self._found = self._read()
            self._due_at = self._clock() + _LOOK_SECONDS
        return 0, *self._found.get(account_id, ())


class ClusterEngine(Engine):
    """Planes in PostgreSQL and an object store.

    `accounts` returns the accounts of all tenants, or `None` if they cannot be read now.
    """

    def __init__(
        self, cluster: Cluster, master_key: MasterKeys, accounts: Callable[[], set[str] | None]
    ) -> None:
        super().__init__(
            Path(),
            master_key,
            planes=Planes.in_cluster(cluster),
            open_max=_OPEN_MAX,
            idle_seconds=_IDLE_SECONDS,
            accounts=accounts,
        )
        self._states = PlaneStates(cluster.plane_states)

    def folder(self, account_id: str) -> Path:
        """Raises `OperatorError`, because the plane is not in a folder."""
        message = f"the store of {account_id} is in PostgreSQL, not in a folder"
        raise OperatorError(message)

    def glance(self, account_id: str) -> Glance:
        """Returns looks at an account's plane, which do not open the plane."""
        state = partial(self._states.of, account_id)
        return Glance(state, partial(self._planes.counts, account_id))
