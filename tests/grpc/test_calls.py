"""L18, L22: handlers behind the front, on a server of grpcio."""

from __future__ import annotations

import asyncio
import threading

import grpc
import grpc.aio
import pytest

from fleetcast.errors import refused
from fleetcast.grpc import calls
from fleetcast.grpc.health import WriteReadiness


async def ended(socket, call, *, is_stream):
    """Status and details that a handler which is `call` comes to."""
    make = (
        grpc.stream_stream_rpc_method_handler if is_stream else grpc.stream_unary_rpc_method_handler
    )
    wrap = calls.stream if is_stream else calls.unary
    server = grpc.aio.server()
    handler = grpc.method_handlers_generic_handler("A", {"B": make(wrap(call))})
    server.add_generic_rpc_handlers([handler])
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        begun = (channel.stream_stream if is_stream else channel.stream_unary)("/A/B")(iter([]))
        found = await begun.code(), await begun.details()
    await server.stop(0)
    return found


@pytest.mark.parametrize("error", [ValueError("secret"), KeyError("secret")])
@pytest.mark.parametrize("is_stream", [False, True])
def test_nothing_of_an_exception_is_told(tmp_path, error, is_stream):  # L18
    async def unary(_requests, _context):
        raise error

    async def stream(_requests, _context):
        raise error
        yield b""

    call = stream if is_stream else unary
    found = asyncio.run(ended(tmp_path / "socket", call, is_stream=is_stream))
    assert found == (grpc.StatusCode.INTERNAL, "internal")


def test_a_refusal_has_its_code_and_its_field(tmp_path):
    async def call(_requests, _context):
        raise refused("invalid_input", field="payload")

    found = asyncio.run(ended(tmp_path / "socket", call, is_stream=False))
    assert found == (grpc.StatusCode.INVALID_ARGUMENT, "invalid_input:payload")


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
