"""Runs pytest under a wall clock that steps at random moments: of the tests and all they start.

`python -m tests.clocks tests/service`, say. The clock is right, a year behind, a year ahead or
1,024 weeks ahead. CLOCKS_SEED chooses the steps, CLOCKS_SECONDS the mean time between them.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.clocks.wall import ROLLOVER_SECONDS, YEAR_SECONDS, WallClock

_STATES = (0, -YEAR_SECONDS, YEAR_SECONDS, ROLLOVER_SECONDS)


def main() -> int:
    """Returns what pytest returns."""
    seed = os.environ.get("CLOCKS_SEED") or str(random.SystemRandom().randrange(1 << 32))
    mean_seconds = float(os.environ.get("CLOCKS_SECONDS", "3"))
    print(f"CLOCKS_SEED={seed} CLOCKS_SECONDS={mean_seconds:g}", flush=True)
    moments = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        clock = WallClock(Path(folder))
        command = [sys.executable, "-m", "pytest", *sys.argv[1:]]
        tests = subprocess.Popen(command, env={**os.environ, **clock.environment})
        while True:
            try:
                return tests.wait(moments.expovariate(1 / mean_seconds))
            except subprocess.TimeoutExpired:
                clock.set_ahead(moments.choice(_STATES))


if __name__ == "__main__":
    sys.exit(main())
