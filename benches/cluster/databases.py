"""The servers of PostgreSQL that `tests/cluster/with-engine.sh` has started, and their CPU."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from fleetcast.bench.processes import cpu_seconds_below
from tests.cluster.nodes import engine, servers

IS_YOUNG = "SELECT pg_conf_load_time() > clock_timestamp() - interval '61 seconds'"


def settle() -> None:
    """Waits until the primary has read its settings a minute ago.

    Before that, two more questions follow each commit.
    """
    while engine("sql", IS_YOUNG) == "t":
        time.sleep(1)


def databases() -> list[int]:
    """The first process of the primary and of each standby."""
    work = Path(os.environ["ENGINE_WORK"])
    return [int((work / f"n{k}" / "postmaster.pid").read_text().split()[0]) for k in servers()]


def database_cpu_seconds() -> float:
    """CPU of primary and standbys, of sessions that have ended as well."""
    while True:
        with contextlib.suppress(OSError):  # one ended meanwhile
            return sum(map(cpu_seconds_below, databases()))
