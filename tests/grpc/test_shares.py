"""N6 over gRPC: one tenant's calls, on as many channels as it likes, shut nobody else out."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from .messages import encode, record
from .station import INGEST, SECONDS

FIRST = asyncio.FIRST_COMPLETED
PAST = 40
SHARE = 2_048  # calls of one tenant, half of all
STREAMS = 256  # of one connection
PAUSE = 128  # calls, then the server is asked for a sign: its library drops what comes in a flood
NOW_NS = 1_700_000_000_000_000_000


def credentials(ready):
    return grpc.ssl_channel_credentials(Path(ready["grpc_ca"]).read_bytes())


@asynccontextmanager
async def opened(ready, count):
    """Channels with a connection of their own each."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    trusted = credentials(ready)
    channels = [grpc.aio.secure_channel(ready["grpc"], trusted, options) for _ in range(count)]
    try:
        yield channels
    finally:
        for channel in channels:
            await channel.close()


async def silent_calls(channels, key, count):
    """Calls that have begun and send nothing."""
    calls = []
    for number in range(count):
        channel = channels[number // STREAMS]
        calls.append(channel.stream_unary(f"/{INGEST}/Write")(metadata=(("x-api-key", key),)))
        if number % PAUSE == PAUSE - 2:
            await channel.unary_unary(f"/{INGEST}/Health")(b"")
    return calls


def test_n6_calls_without_a_message_shut_out_their_own_tenant_alone(service, station, accounts):
    bad, good = accounts.tenant(), accounts.tenant()
    batch = encode(record(NOW_NS))

    async def run():
        async with opened(service.ready, SHARE // STREAMS + 1) as channels:
            calls = await silent_calls(channels, bad.key, SHARE + PAST)
            refused = [asyncio.create_task(call.code()) for call in calls]
            # The first past the share shows that all of it is taken.
            done, _ = await asyncio.wait(refused, timeout=SECONDS, return_when=FIRST)
            assert done
            own = await asyncio.to_thread(station.write, batch, bad.key)
            other = await asyncio.to_thread(station.write, batch, good.key)
            under_way = sum(not each.done() for each in refused)
            codes = {each.result() for each in refused if each.done()}
            for call in calls:
                call.cancel()
            await asyncio.wait(refused)
        return codes, own, other, under_way

    codes, own, other, under_way = asyncio.run(run())
    assert codes == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert own.refusal == ("RESOURCE_EXHAUSTED", "ingest_buffer_full")
    assert own.retry_seconds == 1
    assert other.status == "OK"
    assert SHARE <= under_way < SHARE + PAST
    until = time.monotonic() + SECONDS  # nothing is held once the server knows that they ended
    while station.write(batch, bad.key).status != "OK":
        assert time.monotonic() < until


def test_a_health_check_without_a_message_ends(service):
    """It needs no key, so the address it comes from has a share, and each a deadline."""

    async def run():
        async with opened(service.ready, 4) as channels:
            calls = [
                channel.stream_unary("/grpc.health.v1.Health/Check")()
                for channel in channels
                for _ in range(PAUSE - 1)
            ]
            codes = [asyncio.create_task(call.code()) for call in calls]
            found = set()
            for code in asyncio.as_completed(codes, timeout=SECONDS):
                found.add(await code)
                if grpc.StatusCode.RESOURCE_EXHAUSTED in found:
                    break
            for call in calls:
                call.cancel()
            await asyncio.wait(codes)
            return found

    # On a slow machine the deadline of the first calls comes before the share is taken.
    ends = {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED}
    assert grpc.StatusCode.RESOURCE_EXHAUSTED in (found := asyncio.run(run()))
    assert found <= ends
