"""The section of peers in docs/forecasts.md.

    python -m benches.forecast.peers --data DIR [--docs DIR]

DIR holds the sets (links/, pools/). Needs what requirements/peers.txt pins; of fracast, which
requirements/fracast.txt pins, there is a row where it is installed. A quarter of an hour on two
cores.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

from benches.forecast.judged import as_judged
from benches.forecast.page import say, write
from benches.forecast.peers.judging import part_of, set_lines
from benches.forecast.peers.peer import installed
from benches.harness.paths import ROOT
from fleetcast.forecast.families import FAMILIES
from fleetcast.forecast.training.material import collected
from fleetcast.forecast.training.sets import sets_of


def terms(peers):
    lines = [
        "| peer | package | licence | learned from | newest values it gets |",
        "|---|---|---|---|---|",
    ]
    for peer in peers:
        package = f"{peer.package} {peer.version}"
        steps = ", ".join(f"{FAMILIES[name].name} {steps:,}" for name, steps in peer.steps.items())
        cells = (peer.name, package, peer.licence, peer.learned_from, steps)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def family_lines(name, data):
    family, peers = FAMILIES[name], installed()
    forecaster, lines = as_judged(family), []
    sets = {one.name: one for one in sets_of(family)}
    for part in collected(family, data, 0, say).test:
        say(f"asking peers of {part.name}")
        rows = list(sets[part.name].rows(data).values())
        samples = part_of(part.samples)
        lines += set_lines(family, part.name, samples, rows, forecaster, peers)
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    with ProcessPoolExecutor(len(FAMILIES)) as processes:
        families = list(processes.map(family_lines, FAMILIES, repeat(options.data)))
    lines = ["## Peers", "", *terms(installed()), "", *(line for one in families for line in one)]
    write(options.docs / "forecasts.md", "peers", lines)


if __name__ == "__main__":
    main()
