"""Planes of an installation of many nodes: a process opens a tenant's plane on its first use."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.engine import Cluster, Engine, Planes
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.config.sections import Store
    from fleetcast.engine import Glance, State, Stats

_GLANCE_NS = 15_000_000_000
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


class CountsGlance:
    """Looks at a plane in a database; its counts are read again every 15 seconds."""

    __slots__ = ("_clock_ns", "counts")

    def __init__(self, counts: Callable[[], Stats], clock_ns: Callable[[], int]) -> None:
        self.counts = counts
        self._clock_ns = clock_ns

    def state(self) -> State:
        """Returns the start of the present 15 seconds, so that counts are read again after it."""
        now_ns = self._clock_ns()
        return now_ns - now_ns % _GLANCE_NS, 0, 0


class ClusterEngine(Engine):
    """Planes in PostgreSQL and an object store.

    `accounts` returns the accounts of all tenants, or `None` if they cannot be read now.
    """

    def __init__(
        self, cluster: Cluster, master_key: bytes, accounts: Callable[[], set[str] | None]
    ) -> None:
        super().__init__(
            Path(),
            master_key,
            planes=Planes.in_cluster(cluster),
            open_max=_OPEN_MAX,
            idle_seconds=_IDLE_SECONDS,
            accounts=accounts,
        )

    def folder(self, account_id: str) -> Path:
        """Raises `OperatorError`, because the plane is not in a folder."""
        message = f"the store of {account_id} is in PostgreSQL, not in a folder"
        raise OperatorError(message)

    def glance(self, account_id: str) -> Glance:
        """Returns looks at an account's plane, which do not open the plane."""
        return CountsGlance(partial(self._planes.counts, account_id), time.time_ns)
