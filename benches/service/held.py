"""Memory of connections that only hold: idle ones, and bodies of which half has come.

    python -m benches.service.held [--idle 10000] [--bodies 1000]

The real service with four workers, each of which holds 4,096 connections. Printed is what all HTTP
processes have for themselves, and what the kernel has for TCP, beyond what they had before.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import select
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.http.client import Client
from tests.service.service import prepare, start

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from tests.service.service import Service

WORKERS = 4
BODY_BYTES = 1_048_576
PAGE_BYTES = resource.getpagesize()
QUIET_SECONDS = 2.0  # of no change, until what came is taken for digested
WARM_REQUESTS = 400


def main() -> None:
    """Prints one row a case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--bodies", type=int, default=1_000)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        service = start(data, prepare(data), "--workers", str(WORKERS))
        try:
            for _ in range(WARM_REQUESTS):
                assert service.post([]).status == 202
            head = f"POST /telemetry HTTP/1.1\r\nContent-Length: {BODY_BYTES}\r\n".encode()
            keyed = head + b"X-Api-Key: " + service.key.encode() + b"\r\n"
            half = b"\r\n" + b"[" * (BODY_BYTES // 2)
            measure(service, "idle", options.idle, b"")
            measure(service, "half a body, no key", options.bodies, head + half)
            measure(service, "half a body, a key", options.bodies, keyed + half)
        finally:
            service.stop()


def measure(service: Service, name: str, count: int, begun: bytes) -> None:
    """Opens connections that begin so and go no further, and prints what they cost."""
    port = int(service.address.rsplit(":", 1)[1])
    before, kernel_before = settled(service)
    clients = []
    for _ in range(count):
        client = Client(port)
        clients.append(client)
        client.sock.settimeout(1.0)  # nobody takes the body of one beyond its share
        with contextlib.suppress(OSError):
            client.send(begun)
    after, kernel_after = settled(service)
    answered, is_open = states([client.sock for client in clients])
    print(
        f"{name}: {is_open:,} of {count:,} open, {answered:,} answered, "
        f"{(after - before) / 1e6:.1f} MB ({(after - before) / count:,.0f} B each), "
        f"in the kernel {(kernel_after - kernel_before) / 1e6:.1f} MB",
        flush=True,
    )
    for client in clients:
        client.sock.close()


def states(socks: Sequence[socket.socket]) -> tuple[int, int]:
    """Counts of those that have an answer, and of those that are open."""
    answered = is_open = 0
    for sock in socks:
        sock.setblocking(False)  # noqa: FBT003 - the library's signature
        try:
            content = sock.recv(65_536)
        except BlockingIOError:
            is_open += 1
        except OSError:
            continue
        else:
            answered += content.startswith(b"HTTP/1.1 ")
            is_open += bool(content) and not select.select([sock], [], [], 0)[0]
    return answered, is_open


def settled(service: Service) -> tuple[int, int]:
    """Memory of the processes and of the kernel when it no longer changes."""
    seen, since = (-1, -1), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        now = (
            sum(map(own_bytes, [service.arbiter("http"), *service.workers("http")])),
            tcp_bytes(),
        )
        if any(abs(new - old) > PAGE_BYTES * 16 for new, old in zip(now, seen, strict=True)):
            seen, since = now, time.monotonic()
        time.sleep(0.1)
    return seen


def own_bytes(process: int) -> int:
    """Memory of a process, its part of what it shares included."""
    text = Path(f"/proc/{process}/smaps_rollup").read_text()
    return int(text.partition("\nPss:")[2].split()[0]) * 1024


def tcp_bytes() -> int:
    """Memory that the kernel has for TCP, of all processes."""
    text = Path("/proc/net/sockstat").read_text()
    return int(text.partition("TCP:")[2].split("\n")[0].split()[-1]) * PAGE_BYTES


if __name__ == "__main__":
    main()
