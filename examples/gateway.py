"""A gateway that measures once a second, and keeps its records while the service is away.

    python gateway.py 127.0.0.1:8443 --key acme.key --authority fleetcast-data/tls/ca.pem

Records go out in batches. If the service cannot be reached they wait in memory, then in the folder
of the spool, from where the next run sends them first. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import logging
import random
import time
from datetime import UTC, datetime
from pathlib import Path

from fleetcast import GatewayWriter, Options, RefusedBatch

SEND_SECONDS = 10.0

logger = logging.getLogger("gateway")


def measure(gateway: str) -> dict[str, object]:
    """Returns a record; a real gateway would ask its radio."""
    return {
        "measurement": "link",
        "time": datetime.now(UTC),
        "tags": {"entity_id": gateway},
        "fields": {"snr_db": random.gauss(12, 1), "up": True},
    }


def refused(batch: RefusedBatch) -> None:
    """Logs records that the service will never take, and why."""
    logger.error("%r", batch)


def main() -> None:
    """Measures until it is told to stop, or `--count` times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="HOST:PORT of the service's gRPC listener")
    parser.add_argument("--key", type=Path, required=True, help="file with a key")
    parser.add_argument("--authority", type=Path, help="certificate that signed the service's")
    parser.add_argument(
        "--spool", type=Path, default=Path("spool"), help="folder for unsent batches"
    )
    parser.add_argument("--name", default="gateway-1")
    parser.add_argument("--count", type=int, help="how often to measure")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between measurements")
    given = parser.parse_args()
    logging.basicConfig(format="%(message)s")
    writer = GatewayWriter(
        given.target,
        given.key.read_text().strip(),
        authority=given.authority,
        spool=given.spool,
        on_refused=refused,
        options=Options(age_seconds=min(given.every, 1.0)),
    )
    try:
        measured = 0
        while given.count is None or measured < given.count:
            writer.write(measure(given.name))
            measured += 1
            time.sleep(given.every)
    except KeyboardInterrupt:
        pass
    finally:
        lost_count = writer.close(SEND_SECONDS)
    print(writer.tally, f"{lost_count} batches lost")


if __name__ == "__main__":
    main()
