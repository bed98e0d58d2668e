"""`benches.service.real_input` on a small folder of the same shape as the real one."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import polars as pl

ROOT = Path(__file__).parents[2]


def make_input(folder: Path) -> None:
    links, pools = folder / "links", folder / "pools"
    links.mkdir(parents=True)
    pools.mkdir()
    # Out of order, with the values that mean loss of lock, one instant more than once.
    seconds = [9, 39, 9, 5, 5]
    lines = [f"{at - 10.0},2021-11-16 19:06:{s:02}.572130919" for at, s in enumerate(seconds)]
    text = "\n".join(["esno,timestamp", *lines, ""])
    (links / "satellite_esno_30s.csv.gz").write_bytes(gzip.compress(text.encode()))
    rows = 1_300
    for name, offset in (("rsl", -470), ("tsl", 130)):
        columns = {
            f"{link}_{channel}": [
                -32_768 if row % 7 == link else offset + row % 11 for row in range(rows)
            ]
            for link in range(3)
            for channel in range(2)
        }
        frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Int16))
        frame = frame.with_row_index("minute")
        frame.write_parquet(links / f"microwave_{name}_decidbm_1min.parquet")
    offered = {f"pool{at}": [at * 1e7 / (row + 1) for row in range(150)] for at in range(1, 4)}
    offered["pool2"][7] = float("nan")
    pl.DataFrame(offered).write_parquet(pools / "hosting_pools_offered_bytes_15min.parquet")


def test_every_value_of_a_small_input_comes_back(tmp_path: Path) -> None:
    make_input(tmp_path)
    command = [sys.executable, "-m", "benches.service.real_input", tmp_path, "--links", "2"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = [line.split() for line in run.stdout.splitlines()]
    counts = {line[0]: line[1:3] for line in lines[2:5]}
    # Rows of the 2 x 2 columns whose levels are both missing are left out.
    kept = 2 * sum(row % 7 != link for link in range(2) for row in range(1_300))
    assert counts == {
        "satellite": ["5", "5"],
        "microwave": [f"{kept:,}", f"{2 * kept:,}"],
        "pools": ["449", "449"],
    }
    assert run.stdout.count("no differences") == 3
