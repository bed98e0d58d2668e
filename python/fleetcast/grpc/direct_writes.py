"""Writes to planes that are open: no thread of Python, and no lock of the interpreter."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from fleetcast.errors import StoreError, TenantFull
from fleetcast.grpc.threads import settle
from fleetcast.surface.stores import write_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.accounts import Identity
    from fleetcast.engine import Plane, WriteResult
    from fleetcast.grpc.services import GrpcServices
    from fleetcast.grpc.threads import Threads
    from fleetcast.surface.stores import TenantStores


class DirectWrites:
    """Writes of one process. Use it from one event loop."""

    def __init__(
        self,
        services: GrpcServices,
        stores: TenantStores,
        threads: Threads,
        ended: Callable[[Identity, int], None],
    ) -> None:
        """`ended` is told the owner and the size of each batch that is no longer under way."""
        self._services = services
        self._stores = stores
        self._ended = ended
        self._threads = threads

    def write(
        self, identity: Identity, plane: Plane, body: bytes
    ) -> asyncio.Future[WriteResult] | None:
        """Has a batch written, to its end even when nobody waits; `None` if the plane is closed."""
        settings = self._services.settings()
        limits = write_limits(settings, settings.grpc.records_per_call_max)
        future: asyncio.Future[WriteResult] = asyncio.get_running_loop().create_future()
        # With the plane, so that nobody closes it meanwhile.
        end = partial(self._end, future, identity, plane, len(body))
        if self._threads.write(identity.account_id, plane, body, limits, end):
            return future
        return None

    def _end(
        self,
        future: asyncio.Future[WriteResult],
        identity: Identity,
        plane: Plane,
        size: int,
        result: WriteResult | None,
        failure: BaseException | None,
    ) -> None:
        """Tells the caller what came of a batch."""
        self._ended(identity, size)
        if isinstance(failure, StoreError):
            self._release(identity, plane, failure, future)
            return
        if result is not None:
            self._stores.count(identity, result)
        elif isinstance(failure, TenantFull):
            self._stores.count_full(identity, failure)
        settle(future, result, failure)

    def _release(
        self,
        identity: Identity,
        plane: Plane,
        error: StoreError,
        future: asyncio.Future[WriteResult],
    ) -> None:
        """Has the plane opened anew before anybody learns of the error; closing it takes a disk."""
        loop = asyncio.get_running_loop()
        released = loop.run_in_executor(None, self._stores.release, identity, plane, error)
        released.add_done_callback(lambda _released: settle(future, None, error))
