"""A TLS server of gRPC that ends with the first call it takes, before it answers.

    python -m tests.client.dying_server CERTIFICATES

It prints its port, and one line more for the call.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc


class Dying(grpc.GenericRpcHandler):
    def service(self, _details):
        return grpc.unary_unary_rpc_method_handler(self.end)

    def end(self, _request, _context):
        print("taken", flush=True)
        os._exit(0)


def main(certificates: Path) -> None:
    pair = [(certificates / name).read_bytes() for name in ("server.key", "server.pem")]
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((Dying(),))
    credentials = grpc.ssl_server_credentials([tuple(pair)])
    print(server.add_secure_port("127.0.0.1:0", credentials), flush=True)
    server.start()
    threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
