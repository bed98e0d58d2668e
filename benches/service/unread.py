"""Memory of the service while one tenant asks for large answers and reads none of them.

    python -m benches.service.unread [--requests 25] [--megabytes 34] [--seconds 12]

The real service with two workers. Printed are the memory of all processes before, at most, and
after the clients have gone, what became of the requests, and what another tenant's took meanwhile.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from tests.http.client import Client
from tests.service.service import command, create_key, prepare, start

RECORDS = 1_000


def main() -> None:
    """Prints one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=25)
    parser.add_argument("--megabytes", type=int, default=34)
    parser.add_argument("--seconds", type=float, default=12.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        key = prepare(data)
        command(data, "tenant", "create", "neighbour")
        neighbour = create_key(data, "neighbour")
        service = start(data, key)
        try:
            print(json.dumps(measure(service, neighbour, options)))
        finally:
            service.stop()


def measure(service, neighbour, options) -> dict:
    for batch in range(options.megabytes):
        assert service.post([wide(batch, number) for number in range(RECORDS)]).status == 202
    size = len(service.get("/topology").body)
    before = resident_bytes(service)
    port = int(service.address.rsplit(":", 1)[1])
    request = f"GET /topology HTTP/1.1\r\nx-api-key: {service.key}\r\n\r\n".encode()
    clients = [Client(port, buffer_bytes=65_536).send(request) for _ in range(options.requests)]
    peak, waits = 0, []
    until = time.monotonic() + options.seconds
    while time.monotonic() < until:
        peak = max(peak, resident_bytes(service))
        began = time.monotonic()
        assert service.get("/topology", key=neighbour).status == 200
        waits.append(time.monotonic() - began)
        time.sleep(0.02)
    statuses = [status_of(client) for client in clients]
    for client in clients:
        client.sock.close()
    time.sleep(2.0)
    return {
        "answer_bytes": size,
        "resident_bytes_before": before,
        "resident_bytes_most": peak,
        "resident_bytes_after": resident_bytes(service),
        "answers": {status: statuses.count(status) for status in sorted(set(statuses))},
        "neighbour_longest_ms": round(1000 * max(waits), 1),
    }


def wide(batch: int, number: int) -> dict:
    return {
        "measurement": "link",
        "time": "2100-01-01",
        "tags": {"entity_id": f"{batch}-{number}"},
        "fields": {"text": "x" * 860},
    }


def status_of(client: Client) -> str:
    """Status of the answer, without reading the rest."""
    client.sock.settimeout(0.1)
    try:
        return client.sock.recv(12).decode()[9:]
    except OSError:
        return "none yet"


def resident_bytes(service) -> int:
    """Memory of all processes that nobody shares with another."""
    total = 0
    for pid in service.processes():
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        total += sum(
            int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_Dirty")
        )
    return total


if __name__ == "__main__":
    main()
