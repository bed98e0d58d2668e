"""Writes of those who were let in a moment ago, without a lookup and without the interpreter.

A verdict is what the ordinary way came to, once it has written a batch: that key may write to this
plane. It holds for ten seconds at most, and not beyond the next change of the control store, the
end of the key, or a change of the plane's files; then the ordinary way decides anew. Limits are
those of the settings in force at each call.
"""

from __future__ import annotations

import asyncio
import weakref
from functools import partial
from typing import TYPE_CHECKING

from fleetcast.errors import StoreError, TenantFull
from fleetcast.grpc.services import Admitted
from fleetcast.grpc.threads import settle
from fleetcast.surface.stores import write_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.accounts import Identity
    from fleetcast.engine import KeyBasis, KeyVerdict, Plane, WriteResult
    from fleetcast.grpc.services import GrpcServices
    from fleetcast.grpc.threads import Threads
    from fleetcast.surface.stores import TenantStores

_TIDY_SECONDS = 1.0


class RememberedWrites:
    """Verdicts of one process. Use it from one event loop, but for `note`."""

    def __init__(
        self,
        services: GrpcServices,
        stores: TenantStores,
        threads: Threads,
        ended: Callable[[Identity, int], None],
    ) -> None:
        """`ended` is told the owner and the size of each batch that is no longer under way."""
        self._services = services
        self._verdicts = services.verdicts
        self._stores = stores
        self._ended = ended
        self._threads = threads
        self._is_tidying = False
        self._counters = services.counters
        self._served = services.counters.counter("fleetcast_grpc_remembered_total")

    def find(self, keys: set[str]) -> KeyVerdict[Admitted] | None:
        """The verdict about the one key that was sent, if there is one that stands."""
        if self._verdicts is None or len(keys) != 1:
            return None
        (key,) = keys
        return self._verdicts.find(key)

    def basis(self) -> KeyBasis | None:
        """State that a verdict rests on, to be asked for before the key is looked up."""
        return None if self._verdicts is None else self._verdicts.basis()

    def note(self, key: str, basis: KeyBasis | None, identity: Identity, plane: Plane) -> None:
        """Remembers that a key was good for a write to a plane. Safe between threads."""
        opened = self._services.engine.files(identity.account_id, plane) if basis else None
        if basis is None or opened is None or self._verdicts is None:
            return
        folder, files = opened
        if identity.control_transaction is not None:
            self._verdicts.remember(
                key,
                basis,
                Admitted(identity, weakref.ref(plane)),
                control_transaction=identity.control_transaction,
                expires_at=identity.key_expires_at,
                plane=plane,
                folder=folder,
                files=files,
            )

    def write(
        self, verdict: KeyVerdict[Admitted], body: bytes
    ) -> asyncio.Future[WriteResult | None] | None:
        """Has a batch written, to its end even when nobody waits; `None` where the plane is closed.

        The result is `None` where the plane's files are others now: nothing was done.
        """
        identity, plane_of = verdict.subject
        plane = plane_of()
        if plane is None:
            return None
        settings = self._services.settings()
        limits = write_limits(settings, settings.grpc.records_per_call_max)
        future: asyncio.Future[WriteResult | None] = asyncio.get_running_loop().create_future()
        # With the plane, so that nobody closes it meanwhile.
        end = partial(self._end, future, identity, plane, len(body))
        if self._threads.write(identity.account_id, verdict, body, limits, end):
            return future
        return None

    def tidy(self) -> None:
        """Has verdicts forgotten once they are too old."""
        if self._verdicts is not None and not self._is_tidying:
            self._is_tidying = True
            asyncio.get_running_loop().call_later(_TIDY_SECONDS, self._tidy)

    def _tidy(self) -> None:
        self._is_tidying = False
        if self._verdicts is not None and self._verdicts.tidy():
            self.tidy()

    def _end(
        self,
        future: asyncio.Future[WriteResult | None],
        identity: Identity,
        plane: Plane,
        size: int,
        result: WriteResult | None,
        failure: BaseException | None,
    ) -> None:
        """Tells who waits what came of a batch."""
        self._ended(identity, size)
        if isinstance(failure, StoreError):
            self._release(identity, plane, failure, future)
            return
        if result is not None:
            self._counters.add(self._served)
            self._stores.count(identity, result)
        elif isinstance(failure, TenantFull):
            self._stores.count_full(identity, failure)
        settle(future, result, failure)

    def _release(
        self,
        identity: Identity,
        plane: Plane,
        error: StoreError,
        future: asyncio.Future[WriteResult | None],
    ) -> None:
        """Has the plane opened anew before anybody learns of the error; closing it takes a disk."""
        loop = asyncio.get_running_loop()
        released = loop.run_in_executor(None, self._stores.release, identity, plane, error)
        released.add_done_callback(lambda _released: settle(future, None, error))
