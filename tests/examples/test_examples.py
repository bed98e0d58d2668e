"""The programs of `examples/` run, and show what they say."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from fleetcast import Client
from tests.grpc.conftest import own
from tests.tidy.files import ROOT

__all__ = ["own"]

EXAMPLES = ROOT / "examples"


def run(name, *arguments, cwd=None):
    command = [sys.executable, EXAMPLES / name, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown(source, names):
    """Runs a cell; returns the value of its last line if that is an expression."""
    *statements, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        statements.append(last)
    exec(compile(ast.Module(statements, []), "cell", "exec"), names)  # noqa: S102 - our own cell
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307 - as above
    return None


def test_the_notebook_of_a_fleet(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    notebook = json.loads((EXAMPLES / "fleet.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names = {"__name__": "notebook"}
    plane, newest, quarters, down, chart = (shown(cell, names) for cell in cells)
    assert repr(plane) == "Plane('acme')"
    assert newest._repr_html_().endswith("<p>10 rows</p>")
    assert quarters.height == 2 * 96
    assert down["entity_id"].to_list() == [f"link-{link}" for link in range(0, 10, 2)]
    assert down["minutes_down"].to_list() == [15, 15, 15, 15, 15]
    assert chart._repr_svg_().count("<polyline") == 2


def test_sql_over_a_scan():
    pytest.importorskip("duckdb")
    said = run("sql.py")
    assert said.count("north") == said.count("south") == 4


def test_a_gateway_keeps_its_records_while_the_service_is_away(own, tmp_path):
    first = own()
    key = tmp_path / "key"
    key.write_text(f"{own.key}\n")
    given = [first.ready["grpc"], "--key", key, "--authority", first.ready["grpc_ca"]]
    given += ["--spool", tmp_path / "spool", "--count", 3, "--every", 0]
    assert run("gateway.py", *given).startswith("Tally(accepted=3,")
    first.kill()
    away = subprocess.run(
        [sys.executable, EXAMPLES / "gateway.py", *map(str, given)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert away.stdout.startswith("Tally(accepted=0,")
    assert away.stdout.endswith("0 batches lost\n")
    assert f"{first.ready['grpc']}: " in away.stderr
    own("--grpc", first.ready["grpc"])
    assert run("gateway.py", *given).startswith("Tally(accepted=6,")


def test_a_lake_has_a_file_for_each_day(own, tmp_path):
    service = own("--set", "adapters.address=127.0.0.1:0")
    key = tmp_path / "key"
    key.write_text(own.key)
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    days = [noon - timedelta(days=back) for back in (3, 1)]
    with Client(service.ready["http"], own.key) as client:
        client.write(
            {"measurement": "link", "time": day, "tags": {"entity_id": "l1"}, "fields": {"x": 1.5}}
            for day in [*days, *days]
        )
    lake = tmp_path / "lake"
    files = [lake / f"day={day.date()}" / "rows.parquet" for day in days]
    for _ in range(2):
        said = run("lake.py", service.ready["adapters"], lake, "--key", key)
        assert said.split() == [str(file) for file in files]
    table = pl.read_parquet(lake / "**/*.parquet", hive_partitioning=True)
    assert table.height == 4
    assert table["entity_id"].unique().to_list() == ["l1"]
    assert table["day"].unique().sort().to_list() == [day.date() for day in days]
