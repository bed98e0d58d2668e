"""Statements that an idle node sends to the primary, with one tenant and with many."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import TYPE_CHECKING

from benches.goals.table import Line
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.cluster.nodes import make_nodes, serving
from tests.cluster.statements import StatementLog, logged

if TYPE_CHECKING:
    from pathlib import Path

TENANTS = (1, 100)
SETTLING_SECONDS = 60.0  # processes have read all stores by then
SECONDS = 120.0  # a node sweeps each minute
NAMED = 6  # statements of which there are most


def idle_lines(folder: Path) -> list[Line]:
    """Statements a second. A node has its two workers of HTTP and its metrics."""
    lines = []
    with logged() as log:
        for count in TENANTS:
            home = folder / f"{count}-tenants"
            home.mkdir()
            lines += _lines_of(home, log, count)
    return lines


def _lines_of(folder: Path, log: StatementLog, count: int) -> list[Line]:
    nodes = make_nodes(folder, 1)
    with opened(DataDirectory(nodes[0]), os.environ) as installation:
        for number in range(count):
            installation.tenants.create(f"tenant-{number}")
    with serving(nodes, "--workers", "2"):
        time.sleep(SETTLING_SECONDS)
        log.news()
        time.sleep(SECONDS)
        found = log.news()
    own = StatementLog.without_checks(found)
    named = f"{len(own) / SECONDS:.1f} without checks of settings"
    total = Line(f"statements a second, idle, tenants: {count}", _rate(len(found)), named)
    most = Counter(own).most_common(NAMED)
    return [total, *(Line(f"… {sql[:60]}", _rate(times)) for sql, times in most)]


def _rate(times: int) -> str:
    return f"{times / SECONDS:.2f}"
