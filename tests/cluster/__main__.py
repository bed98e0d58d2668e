"""Faults under load for some minutes, and a table of what was counted. `make failover` runs it.

    python -m tests.cluster [--minutes 30] tests/cluster/test_failover.py ...

Each pass runs all files, and the last pass is ended by its last test. It stops at a failure.
"""

from __future__ import annotations

import argparse
import sys
import time

import pytest

from . import figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=0.0, help="0: one pass")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    end = time.monotonic() + options.minutes * 60
    failed = 0
    while not failed:
        failed = int(pytest.main(["-q", "-x", "-s", *options.files]))
        if time.monotonic() >= end:
            break
    print(f"\n{figures.table()}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
