"""L6, L18, L19, L27, B23: what no running service does on demand, on doubles."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import grpc.aio
import pytest

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.errors import Refused, StoreDamaged, StoreFull, StoreUnavailable, refused
from fleetcast.grpc.answers import error_status
from fleetcast.grpc.boundary import CallBoundary
from fleetcast.grpc.call import Call
from fleetcast.grpc.connections import Connections
from fleetcast.grpc.health import WriteReadiness
from fleetcast.grpc.ingest import TelemetryIngest
from fleetcast.grpc.owned_shares import OwnedShares
from fleetcast.metrics import AccountRequests, Counters, Totals
from fleetcast.protobuf import delimited, fields, integer
from fleetcast.surface.error_codes import ERROR_CODES
from tests.waiting import PATIENCE_SECONDS

from .doubles import SILENCE, Context, Keys, Plane, accepted, identity, services, write

SHARE_OF_CALLS = 2_048  # of the 4,096 that there may be


def test_what_is_under_way_is_bounded_in_bytes():  # L19, F10
    plane = Plane()

    async def run():
        ingest = TelemetryIngest(services(plane), WriteReadiness({}))
        first = asyncio.create_task(write(ingest, bytes(1_000_000)))
        await asyncio.to_thread(plane.entered.acquire)
        with pytest.raises(Refused) as raised:
            await write(ingest, bytes(100_000))
        plane.may_go_on.set()
        response = dict(fields(await first))
        again = await write(ingest, bytes(100_000))
        ingest.close()
        return raised.value, response, again

    error, response, again = asyncio.run(run())
    assert (response[2], dict(fields(again))[2]) == (1_000_000, 100_000)
    answer = error_status(error)
    assert (answer.status.name, answer.details) == ("RESOURCE_EXHAUSTED", "ingest_buffer_full")
    assert answer.retry_seconds == 1


def test_one_that_alone_is_above_the_bound_passes():
    admission = OwnedShares(Counters.alone())
    admission.enter("a", 11, 10)
    with pytest.raises(Refused):
        admission.enter("b", 1, 10)
    admission.give("a", 11)
    admission.enter("b", 10, 10)


def test_n6_calls_that_send_nothing_take_their_own_share_and_no_more(monkeypatch):
    """One tenant opens calls without end; another's write goes through, and its own again when
    one of them has ended.
    """
    monkeypatch.setattr("fleetcast.grpc.ingest._REFUSAL_SECONDS", 0.0)
    plane = Plane()
    plane.may_go_on.set()
    parts = services(plane, other=identity(account_id="b2", tenant_key="beta"))

    async def run():
        ingest = TelemetryIngest(parts, WriteReadiness({}))
        held = []
        for _ in range(SHARE_OF_CALLS):
            context = Context(messages=(SILENCE,))
            call = Call(context, "TelemetryIngest/Write")
            held.append(asyncio.create_task(ingest.write(None, call)))
            await context.reading.wait()
        with pytest.raises(Refused) as raised:
            await write(ingest, b"abc")
        other = Context((("x-api-key", "other"),), (b"abcd",))
        passed = await ingest.write(None, Call(other, "TelemetryIngest/Write"))
        held[0].cancel()
        await asyncio.wait(held[:1])
        again = await write(ingest, b"abc")
        for call in held:
            call.cancel()
        await asyncio.wait(held)
        ingest.close()
        return raised.value, passed, again

    error, passed, again = asyncio.run(run())
    assert error.args == ("ingest_buffer_full", {})
    assert (dict(fields(passed))[2], dict(fields(again))[2]) == (4, 3)
    totals = Totals(parts.counters.shared).all()
    assert totals['fleetcast_refused_over_share_total{surface="grpc"}'] == 1


def test_n6_writes_that_do_not_end_leave_threads_to_other_tenants():
    """Calls up to the share of one tenant, and as many again that wait behind them."""
    stuck, free = Plane(), Plane()
    free.may_go_on.set()
    parts = services(stuck, other=identity(account_id="b2", tenant_key="beta"))
    parts.engine.by_account["b2"] = free

    async def run():
        ingest = TelemetryIngest(parts, WriteReadiness({}))
        held = [asyncio.create_task(write(ingest, b"a")) for _ in range(64)]
        for _ in range(32):
            await asyncio.to_thread(stuck.entered.acquire)
        other = Context((("x-api-key", "other"),), (b"abcd",))
        passed = await ingest.write(None, Call(other, "TelemetryIngest/Write"))
        more = stuck.entered.acquire(blocking=False)
        stuck.may_go_on.set()
        await asyncio.gather(*held)
        ingest.close()
        return passed, more

    passed, more = asyncio.run(run())
    assert dict(fields(passed))[2] == 4
    assert not more


def test_a_key_that_takes_long_to_check_stops_no_other_call(monkeypatch):
    """The loop goes on, and who waits is told that it is not the key's fault."""
    begun, ends = threading.Event(), threading.Event()

    class Slow(Keys):
        def authenticate(self, _key):
            begun.set()
            ends.wait()

    parts = replace(services(Plane()), authenticator=Slow())

    async def run():
        ingest = TelemetryIngest(parts, WriteReadiness({}))
        monkeypatch.setattr("fleetcast.grpc.ingest._KEY_SECONDS", PATIENCE_SECONDS)
        patient = asyncio.create_task(write(ingest, b"a"))
        await asyncio.to_thread(begun.wait)
        health = await ingest.health(None, Call(Context(), "TelemetryIngest/Health"))
        done = patient.done()
        monkeypatch.setattr("fleetcast.grpc.ingest._KEY_SECONDS", 0.1)
        with pytest.raises(ControlStoreUnavailable):
            await write(ingest, b"a")
        patient.cancel()
        ends.set()
        ingest.close()
        return health, done

    assert asyncio.run(run()) == (integer(1, 1), False)


def test_l28_calls_without_records_may_be_under_way_together():
    plane = Plane()
    parts = services(plane)

    async def run():
        ingest = TelemetryIngest(parts, WriteReadiness({}))
        calls = [asyncio.create_task(write(ingest, b"")) for _ in range(8)]
        for _ in calls:
            await asyncio.to_thread(plane.entered.acquire)
        plane.may_go_on.set()
        answers = await asyncio.gather(*calls)
        ingest.close()
        return [dict(fields(answer)).get(2, 0) for answer in answers]

    assert asyncio.run(run()) == [0] * 8


def test_l18_a_panic_of_the_engine_is_internal_and_says_nothing():
    class Panic(BaseException):
        """Stands for PyO3's `PanicException`, which is no `Exception` either."""

    plane = Plane(Panic("secret"))
    plane.may_go_on.set()
    parts = services(plane)
    context = Context(messages=(b"a",))

    async def run():
        ingest = TelemetryIngest(parts, WriteReadiness({}))
        with pytest.raises(grpc.aio.AbortError):
            await CallBoundary(parts, Connections(0)).unary("A/Write", ingest.write)(None, context)
        ingest.close()

    asyncio.run(run())
    assert context.ended == ("INTERNAL", "internal", {})


def test_a_write_goes_on_when_its_client_has_left():  # L27, F8
    plane = Plane()
    parts = services(plane)

    async def run():
        ingest = TelemetryIngest(parts, WriteReadiness({}))
        call = asyncio.create_task(write(ingest, bytes(1_000_000)))
        await asyncio.to_thread(plane.entered.acquire)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(Refused):  # its bytes are still held
            await write(ingest, bytes(100_000))
        plane.may_go_on.set()
        ingest.close()

    asyncio.run(run())
    assert accepted(parts) == 1_000_000


@pytest.mark.parametrize(
    ("error", "released"),
    [(StoreUnavailable("no"), 1), (StoreDamaged("no"), 1), (StoreFull("no"), 0)],
)
def test_a_store_that_fails(error, released):  # F9, F12
    plane = Plane(error)
    plane.may_go_on.set()
    parts = services(plane)

    async def run():
        with pytest.raises(type(error)) as raised:
            await write(TelemetryIngest(parts, WriteReadiness({})), b"")
        return raised.value

    answer = error_status(asyncio.run(run()))
    assert (answer.status.name, answer.details) == ("UNAVAILABLE", "telemetry_unavailable")
    assert len(parts.engine.released) == released


def test_keys_that_cannot_be_checked():  # B23
    parts = services(Plane(), good=ControlStoreUnavailable("no"))

    async def run():
        with pytest.raises(ControlStoreUnavailable) as raised:
            await write(TelemetryIngest(parts, WriteReadiness({})), b"")
        return raised.value

    answer = error_status(asyncio.run(run()))
    assert (answer.status.name, answer.details) == ("UNAVAILABLE", "entitlement_unavailable")


@pytest.mark.parametrize("code", [code for code, row in ERROR_CODES.items() if row.grpc])
def test_every_code_says_whether_to_come_back(code):  # L6
    answer = error_status(refused(code, retry_after_seconds=9))
    comes_back = answer.status.name == "UNAVAILABLE" or code == "ingest_buffer_full"
    assert (answer.retry_seconds is not None) is comes_back
    assert answer.details == code
    if comes_back:
        (_, status) = answer.trailers[0]
        retry = delimited(1, integer(1, answer.retry_seconds))
        any_ = delimited(1, "type.googleapis.com/google.rpc.RetryInfo") + delimited(2, retry)
        code_number = integer(1, answer.status.value[0])
        assert status == code_number + delimited(2, code) + delimited(3, any_)


@pytest.mark.parametrize("error", [ValueError("secret"), KeyError("secret"), refused("secret")])
def test_nothing_of_an_exception_is_told(error):  # L18
    context, log = Context(), []

    async def unary(_request, _call):
        raise error

    async def stream(_request, _call):
        yield b""
        raise error

    async def run():
        boundary = CallBoundary(services(Plane(), log), Connections(0))
        with pytest.raises(grpc.aio.AbortError):
            await boundary.unary("A/Write", unary)(b"", context)
        one = context.ended
        with pytest.raises(grpc.aio.AbortError):
            async for _ in boundary.stream("A/Watch", stream)(b"", context):
                pass
        return one, context.ended

    assert asyncio.run(run()) == (("INTERNAL", "internal", {}), ("INTERNAL", "internal", {}))
    assert [(line.route, line.status, line.error) for line in log] == [
        ("A/Write", "INTERNAL", "internal"),
        ("A/Watch", "INTERNAL", "internal"),
    ]


def test_every_call_is_counted_and_logged():
    plane, log = Plane(), []
    plane.may_go_on.set()
    parts = services(plane, log, poor=identity(live_ingest=False))

    async def run():
        ingest = TelemetryIngest(parts, WriteReadiness({}))
        outermost = CallBoundary(parts, Connections(0)).unary("TelemetryIngest/Write", ingest.write)
        await outermost(None, Context(messages=(b"abc",)))
        ended = []
        for key in ("poor", "bad"):
            context = Context((("x-api-key", key),))
            with pytest.raises(grpc.aio.AbortError):
                await outermost(None, context)
            ended.append(context.ended[:2])
        silent = Context(messages=(SILENCE,))
        call = asyncio.create_task(outermost(None, silent))
        await silent.reading.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        ingest.close()
        return ended

    assert asyncio.run(run()) == [
        ("PERMISSION_DENIED", "live_ingest_not_entitled"),
        ("UNAUTHENTICATED", "auth_failed"),
    ]
    assert accepted(parts) == 3
    assert [(line.status, line.error, line.tenant, line.bytes_in) for line in log] == [
        ("OK", None, "acme", 3),
        ("PERMISSION_DENIED", "live_ingest_not_entitled", "acme", 0),
        ("UNAUTHENTICATED", "auth_failed", None, 0),
        ("CANCELLED", None, "acme", 0),
    ]
    totals = Totals(parts.counters.shared).all()
    assert totals["fleetcast_grpc_requests_in_flight"] == 0
    assert totals['fleetcast_grpc_refused_total{code="auth_failed"}'] == 1
    assert AccountRequests(parts.counters.shared).all() == {"a1": 3}


def test_a_dependency_that_hangs_is_not_well(monkeypatch):
    monkeypatch.setattr("fleetcast.grpc.health._PING_SECONDS", 0.0)
    ends = threading.Event()

    async def run():
        return await WriteReadiness({"store": ends.wait}).is_ready()

    try:
        assert asyncio.run(run()) is False
    finally:
        ends.set()


def test_it_is_not_well_when_it_is_about_to_leave():  # L22
    async def run():
        readiness = WriteReadiness({})
        before = await readiness.is_ready()
        readiness.leaving.set()
        return before, await readiness.is_ready()

    assert asyncio.run(run()) == (True, False)
