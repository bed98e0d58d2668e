"""A client in a process of its own: posts ready-made requests over raw sockets, as fast as they
are answered.

Arguments: address, path, key and what is sent, one of `SENT`. Each line on stdin, `{"connections":
4, "seconds": 2}`, is one drive and is answered by one line on stdout: requests, wall and CPU
seconds, median latency.
"""

from __future__ import annotations

import socket
import sys
import time
from typing import TYPE_CHECKING

from benches.harness.driving import answer_commands, driven
from benches.inputs import sent

if TYPE_CHECKING:
    from collections.abc import Iterator


class Connection:
    def __init__(self, address: str, requests: Iterator[bytes]) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._requests = requests
        self.latencies: list[float] = []

    def run(self, until: float) -> None:
        self.latencies = []
        start = time.perf_counter()
        while start < until:
            self._socket.sendall(next(self._requests))
            answer = self._socket.recv(65_536)
            while b"\r\n\r\n" not in answer or not answer.endswith(b"}"):
                answer += self._socket.recv(65_536)
            if not answer.startswith(b"HTTP/1.1 202 "):
                raise SystemExit(answer.decode())
            now = time.perf_counter()
            self.latencies.append(now - start)
            start = now

    def close(self) -> None:
        self._socket.close()


def main() -> None:
    address, path, key, *which = sys.argv[1:]
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {address.rpartition(':')[0]}\r\nX-Api-Key: {key}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    ).encode()
    senders = sent.SENT[which[0] if which else sent.AGAIN](head)

    def drive(wish: dict) -> dict:
        connections = []
        for number in range(wish["connections"]):
            connections.append(Connection(address, senders[number % len(senders)]))
            # Workers share connections out as they come; a burst may end with one of them.
            time.sleep(0.05)
        answer = driven(connections, wish["seconds"])
        for connection in connections:
            connection.close()
        return answer

    answer_commands(drive)


if __name__ == "__main__":
    main()
