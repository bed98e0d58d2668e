"""A gRPC handler that takes the bytes and does nothing, on a server of the service's own kind.

The service without keys, decoding and a store. Argument: a data directory that
`fleetcast init` made, for its certificate. Prints where it listens.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import grpc
import grpc.aio

from fleetcast.config import Settings
from fleetcast.grpc.names import INGEST
from fleetcast.grpc.server import _options
from fleetcast.malloc import keep_large_buffers


async def take(requests, _context) -> bytes:
    async for _ in requests:
        return b""
    return b""


async def main() -> None:
    keep_large_buffers()
    tls = Path(sys.argv[1]) / "tls"
    server = grpc.aio.server(options=_options(Settings(), shared=False))
    methods = {"Write": grpc.stream_unary_rpc_method_handler(take)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(INGEST, methods)])
    pair = ((tls / "server.key").read_bytes(), (tls / "server.pem").read_bytes())
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    await server.start()
    ready = {"grpc": f"127.0.0.1:{port}", "grpc_ca": str(tls / "ca.pem")}
    print(json.dumps(ready), flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
