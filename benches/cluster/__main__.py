"""Three nodes on servers of this machine, and one with the embedded store, in the same run.

    PYTHON=$PWD/.venv/cluster/bin/python sh tests/cluster/with-engine.sh \\
      .venv/bin/python -m benches.cluster [--parts idle,units,writes,tenants,distance,cold,fleet] \\
      [--seconds 5] [--days 30] [--nodes 100] [--tenants 10000]

The engine must have the backend: `maturin develop --release --features cluster`, or a package from
`make wheels` on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from benches.cluster.cold import cold_lines
from benches.cluster.databases import settle
from benches.cluster.fleet import fleet_lines
from benches.cluster.idle import idle_lines
from benches.cluster.tenants import distance_lines, tenant_lines
from benches.cluster.units import unit_lines
from benches.cluster.writes import write_lines
from benches.goals.table import Line, as_markdown, as_text
from benches.harness.paths import DATA

PARTS = {
    "idle": lambda folder, _options: idle_lines(folder),
    "units": lambda folder, options: unit_lines(folder, hours=min(options.days, 24)),
    "writes": lambda folder, options: write_lines(folder, options.seconds),
    "tenants": lambda folder, options: tenant_lines(folder, options.seconds),
    "distance": lambda folder, options: distance_lines(folder, options.seconds),
    "cold": lambda folder, options: cold_lines(folder, options.days),
    "fleet": lambda _folder, options: fleet_lines(options.nodes, options.tenants),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--nodes", type=int, default=100, help="of the part fleet")
    parser.add_argument("--tenants", type=int, default=10_000, help="of the part fleet")
    parser.add_argument("--parts", default=",".join(PARTS), help="some of them")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    print(f"load before the run {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    DATA.mkdir(parents=True, exist_ok=True)
    settle()
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(dir=DATA) as folder:
        for part in options.parts.split(","):
            home = Path(folder) / part
            home.mkdir()
            lines += PARTS[part](home, options)
    print(as_markdown(lines, "three nodes") if options.markdown else as_text(lines))


if __name__ == "__main__":
    main()
