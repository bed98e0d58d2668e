"""A gRPC client in a process of its own: sends ready-made messages over warm channels, each as fast
as it is answered.

Arguments: address, certificate of the authority, key, records per message. Each line on stdin,
`{"connections": 4, "seconds": 2}`, is one drive and is answered by one line on stdout, as by
`http_client.py`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import grpc

from benches.harness.driving import answer_commands, driven
from benches.inputs.messages import message

METHOD = "/fleet.telemetry.v1.TelemetryIngest/Write"
MESSAGE_RECORDS_IN_ALL = 20_000


class Channel:
    def __init__(self, address: str, authority: bytes, key: str, messages: list[bytes]) -> None:
        options = [
            ("grpc.use_local_subchannel_pool", 1),  # a connection of its own
            ("grpc.max_send_message_length", -1),
        ]
        credentials = grpc.ssl_channel_credentials(authority)
        self._channel = grpc.secure_channel(address, credentials, options)
        self._call = self._channel.unary_unary(METHOD)
        self._metadata = (("x-api-key", key),)
        self._messages = messages
        self._next = 0
        self.latencies: list[float] = []

    def run(self, until: float) -> None:
        self.latencies = []
        start = time.perf_counter()
        while start < until:
            body = self._messages[self._next % len(self._messages)]
            self._next += 1
            self._call(body, metadata=self._metadata, timeout=60)
            now = time.perf_counter()
            self.latencies.append(now - start)
            start = now


def main() -> None:
    address, authority, key, records = sys.argv[1:]
    messages = [message(n, int(records)) for n in range(MESSAGE_RECORDS_IN_ALL // int(records))]
    certificate = Path(authority).read_bytes()
    channels: list[Channel] = []  # kept: a station's channel is warm

    def drive(wish: dict) -> dict:
        while len(channels) < wish["connections"]:
            channels.append(Channel(address, certificate, key, messages))
        return driven(channels, wish["seconds"])

    answer_commands(drive)


if __name__ == "__main__":
    main()
