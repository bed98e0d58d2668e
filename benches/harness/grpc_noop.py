"""A gRPC handler of grpcio that takes the bytes and does nothing.

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

from fleetcast.grpc.names import INGEST
from fleetcast.malloc import keep_large_buffers

# A message of a megabyte in one frame instead of 64.
OPTIONS = [
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.max_concurrent_streams", 256),
    ("grpc.http2.max_frame_size", 1 << 20),
]


async def take(requests, _context) -> bytes:
    async for _ in requests:
        return b""
    return b""


async def main() -> None:
    keep_large_buffers()
    tls = Path(sys.argv[1]) / "tls"
    server = grpc.aio.server(options=OPTIONS)
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
