"""A gRPC client in a process of its own: sends ready-made messages over warm channels, each as fast
as it is answered.

Arguments: address, certificate of the authority, key, records per message. Each line on stdin,
`{"connections": 4, "seconds": 2}`, is one drive and is answered by one line on stdout, as by
`drive.py`.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from pathlib import Path

import grpc

from messages import message

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
    print("{}", flush=True)
    for line in sys.stdin:
        wish = json.loads(line)
        while len(channels) < wish["connections"]:
            channels.append(Channel(address, certificate, key, messages))
        cpu, start = time.process_time(), time.perf_counter()
        until = start + wish["seconds"]
        threads = [threading.Thread(target=c.run, args=(until,)) for c in channels]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        latencies = [latency for c in channels for latency in c.latencies]
        drive = {
            "requests": len(latencies),
            "seconds": time.perf_counter() - start,
            "client_cpu_seconds": time.process_time() - cpu,
            "p50_seconds": statistics.median(latencies),
        }
        print(json.dumps(drive), flush=True)


if __name__ == "__main__":
    main()
