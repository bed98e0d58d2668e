"""`TelemetryIngest`: writes batches.

A write is declared as a stream of requests, which on the wire is the same as a single one: so the
key is checked before the message is received, and nobody without a key can make the server hold
more than what the transport lets through.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStoreUnavailable, InvalidKey
from fleetcast.engine import KeyOwners
from fleetcast.errors import StoreError, refused
from fleetcast.grpc.direct_writes import DirectWrites
from fleetcast.grpc.owned_shares import OverShare, OwnedShares
from fleetcast.grpc.threads import Threads
from fleetcast.protobuf import delimited, integer
from fleetcast.surface.accounting import audit_key
from fleetcast.surface.stores import TenantStores

if TYPE_CHECKING:
    from fleetcast.accounts import Identity
    from fleetcast.engine import WriteResult
    from fleetcast.grpc.call import Call
    from fleetcast.grpc.health import WriteReadiness
    from fleetcast.grpc.services import GrpcServices

_SCOPE = "telemetry:write"
_WRITES_MAX = 32  # of one tenant: as many batches can share a commit
_KEY_CHECKS_MAX = 2  # of one account, or of one address: each is done in some 50 microseconds
_KEY_SECONDS = 5.0  # where it takes longer the control store is stuck
_CALLS_MAX = 4096  # each holds what the transport lets through, some 100 KiB
_REFUSAL_SECONDS = 1.0
_CHECK_SECONDS = 0.5  # how old the check of a key may be when its message has come
_READ_SECONDS = 120.0  # a full message takes that long over 1 Mbit/s
_OK = integer(1, 1)


class TelemetryIngest:
    """The two methods of the service."""

    def __init__(self, services: GrpcServices, readiness: WriteReadiness) -> None:
        self._services = services
        self._readiness = readiness
        self._stores = TenantStores(services, "grpc")
        self._owners = KeyOwners()
        self._arriving = OwnedShares(services.counters)
        self._calls = OwnedShares(services.counters)
        self._bytes = OwnedShares(services.counters)
        self._key_threads = Threads(_KEY_CHECKS_MAX)
        self._write_threads = Threads(_WRITES_MAX)
        self._direct = DirectWrites(services, self._stores, self._write_threads, self._ended)

    async def write(self, _requests: object, call: Call) -> bytes:
        """Writes one batch; OK means that it is on disk, or queued in asynchronous mode.

        Raises `Refused`, `StoreError`, `ControlStoreUnavailable`.
        """
        keys = call.keys()
        checked_at = time.monotonic()
        try:
            identity = await self._entitled(call, keys)
            self._calls.enter(identity.account_id, 1, _CALLS_MAX)
        except OverShare:
            # A client that does not wait for a second, as it should, could keep the loop busy.
            await asyncio.sleep(_REFUSAL_SECONDS)
            raise
        try:
            body = await call.message(_READ_SECONDS)
            call.received_bytes = len(body)
            if time.monotonic() - checked_at > _CHECK_SECONDS:  # the key may have ended meanwhile
                await self._entitled(call, keys)
            result = await self._store(call, identity, body)
        finally:
            self._calls.give(identity.account_id, 1)
        return (
            delimited(1, result.write_id)
            + integer(2, result.accepted_count)
            + integer(3, len(result.rejected_indices))
        )

    async def health(self, _requests: object, _call: Call) -> bytes:
        """OK, or UNAVAILABLE: the field of the answer says nothing."""
        if not await self._readiness.is_ready():
            raise refused("telemetry_unavailable")
        return _OK

    def close(self) -> None:
        """Waits for the batches that are being written."""
        self._key_threads.close()
        self._write_threads.close()

    async def _entitled(self, call: Call, keys: set[str]) -> Identity:
        if len(keys) > 1:  # several are none at all, unless they are equal
            raise refused("auth_failed")
        key = next(iter(keys), None)
        writer = None if key is None else self._services.authenticator.writer(key)
        if writer is not None:
            call.identity = writer
            self._owners.learn(key, writer.account_id)
            return writer
        owner = self._owners.of(key, call.address)
        # An account that has too many calls is refused another before that has cost anything.
        self._calls.enter(owner, 1, _CALLS_MAX)
        try:
            identity = await self._authenticated(key, owner)
        except InvalidKey:
            audit_key(
                "authentication failed",
                key,
                request_id=call.request_id,
                client=call.client,
                transport="grpc",
            )
            raise
        finally:
            self._calls.give(owner, 1)
        call.identity = identity
        self._owners.learn(key, identity.account_id)
        if _SCOPE not in identity.scopes:
            raise refused("insufficient_scope")
        if not identity.live_ingest:
            raise refused("live_ingest_not_entitled")
        return identity

    async def _authenticated(self, key: str | None, owner: str) -> Identity:
        """Checks the key in a thread: a control store that is stuck must not stop the loop."""
        self._arriving.enter(owner, 1, _CALLS_MAX)
        check = partial(self._services.authenticator.authenticate, key)
        checked = self._key_threads.run(owner, check)

        def end(checked: asyncio.Future[Identity]) -> None:
            self._arriving.give(owner, 1)
            checked.exception()  # has been seen, also where nobody waits any more

        checked.add_done_callback(end)
        await asyncio.wait([checked], timeout=_KEY_SECONDS)
        if not checked.done():
            message = f"no answer within {_KEY_SECONDS:g} seconds"
            raise ControlStoreUnavailable(message)
        return checked.result()

    async def _store(self, call: Call, identity: Identity, body: bytes) -> WriteResult:
        """Writes to the end even when the client does not wait for it."""
        self._enter_bytes(identity, len(body))
        plane = self._services.engine.opened(identity.account_id)
        written = None if plane is None else self._direct.write(identity, plane, body)
        if written is None:  # the plane is to be opened, which takes a thread
            job = partial(self._write, call.request_id, identity, body)
            written = self._write_threads.run(identity.account_id, job)
        return await written

    def _enter_bytes(self, identity: Identity, size: int) -> None:
        bound = self._services.settings().ingest.buffer_bytes_max
        self._bytes.enter(identity.account_id, size, bound)

    def _ended(self, identity: Identity, size: int) -> None:
        self._bytes.give(identity.account_id, size)

    def _write(self, request_id: str, identity: Identity, body: bytes) -> WriteResult:
        try:
            plane = self._stores.open(identity, request_id)
            settings = self._services.settings()
            records_max = settings.grpc.records_per_call_max
            try:
                result = self._stores.write(
                    plane.write_protobuf, body, identity, settings, records_max=records_max
                )
            except StoreError as error:
                self._stores.release(identity, plane, error)
                raise
        finally:
            self._ended(identity, len(body))
        return result
