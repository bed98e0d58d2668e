"""Work that needs no extra, and the one line that names the extra that is lacking."""

import json
import re
import subprocess
import sys
import tomllib

import pytest

from fleetcast.cli.main import run
from fleetcast.extras import EXTRAS
from tests.tidy.files import ROOT
from tests.tidy.python import imports

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Packages that are imported by another name than their own.
IMPORTED = {"backports.zstd": "backports", "grpcio": "grpc", "paho-mqtt": "paho"}
EMBEDDED = """
import datetime, pathlib, tempfile
from fleetcast import Client, Engine, encode_records
with tempfile.TemporaryDirectory() as folder:
    engine = Engine(pathlib.Path(folder), bytes(32))
    engine.create_plane("a")
    record = {
        "measurement": "link",
        "time": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        "tags": {"entity_id": "l1"},
        "fields": {"snr_db": 1.5},
    }
    plane = engine.plane("a", "a")
    print(plane.write_json(encode_records([record])).accepted_count, plane.stats().rows)
    engine.close()
"""
COMMAND = "from fleetcast.cli.main import run; sys.exit(run({arguments!r}))"


def without(libraries, program, **options):
    """Runs a program in which some libraries cannot be imported."""
    hide = f"import sys\nfor name in {sorted(libraries)!r}: sys.modules[name] = None\n"
    command = [sys.executable, "-c", hide + program]
    return subprocess.run(command, check=False, capture_output=True, text=True, **options)


def of(*extras):
    return {library for library, extra in EXTRAS.items() if extra in extras}


def test_each_library_is_in_the_extra_that_is_named_for_it():
    extras = PROJECT["optional-dependencies"]
    packages = {
        extra: {re.match(r"[\w.]+", line)[0] for line in lines} for extra, lines in extras.items()
    }
    brought = {
        extra: {IMPORTED.get(name, name) for name in names} for extra, names in packages.items()
    }
    assert {e: of(e) - brought[e] for e in brought} == {e: set() for e in brought}
    assert set().union(*brought.values()) - {"fleetcast"} == set(EXTRAS)
    assert extras["all"] == [f"fleetcast[{','.join(e for e in extras if e != 'all')}]"]
    assert PROJECT["dependencies"] == []


def test_nothing_is_imported_that_no_extra_brings():
    known = sys.stdlib_module_names | set(EXTRAS) | {"fleetcast"}
    files = (ROOT / "python").rglob("*.py")
    found = {name.partition(".")[0] for file in files for name in imports(file)}
    assert found - known == set()


def test_the_engine_and_the_http_client_need_no_other_package():
    done = without(EXTRAS, EMBEDDED)
    assert (done.stdout, done.stderr) == ("1 1\n", "")


def test_the_gateway_writer_names_its_extra():
    done = without(EXTRAS, "from fleetcast import GatewayWriter")
    last = done.stderr.splitlines()[-1]
    assert last.endswith("grpc is not installed: pip install 'fleetcast[client]'")


def test_the_program_without_its_extra_is_one_line():
    done = without(EXTRAS, "import runpy; runpy.run_module('fleetcast', run_name='__main__')")
    line = "fleetcast: click is not installed: pip install 'fleetcast[server]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


SPAN = ["--start", "2026-01-01", "--end", "2026-01-02"]
BACKTEST = ["--family", "snr", "--input", "rows.csv", *SPAN, "--every", "60m", "--output", "x"]
RISK = ["--family", "snr", "--input", "rows.csv", "--at", "2026-01-01", "--below", "9"]


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("frames", ["export", "rows", "--tenant", "acme", "--format", "parquet", *SPAN]),
        ("frames", ["export", "rows", "--tenant", "acme", "--format", "csv", *SPAN]),
        ("frames", ["import", "rows.csv", "--tenant", "acme", "--format", "parquet"]),
        ("forecast", ["forecast", "backtest", *BACKTEST]),
        ("forecast", ["forecast", "risk", *RISK]),
        ("forecast", ["forecast", "release", "promote", "--family", "snr"]),
        ("forecast", ["serve", "--set", 'forecast.families=["snr"]']),
        ("forecast", ["serve", "--set", "topology.simulate=true"]),
        ("train", ["forecast", "train", "--family", "snr", "--data", "."]),
    ],
)
def test_a_command_names_the_extra_that_it_lacks(extra, arguments, tmp_path):
    assert run(["tenant", "create", "acme"]) == 0
    (tmp_path / "rows.csv").write_text("entity_id,time\n")
    done = without(of(extra), COMMAND.format(arguments=arguments), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fleetcast: ")
    assert done.stderr.endswith(f": pip install 'fleetcast[{extra}]'\n")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "rows").exists()


@pytest.mark.usefixtures("data")
def test_rows_of_text_need_no_frames(tmp_path):
    assert run(["tenant", "create", "acme"]) == 0
    rows = tmp_path / "rows.csv"
    rows.write_text("entity_id,time,snr_db\nl1,2026-01-01T00:00:00Z,1.5\n")
    arguments = ["import", str(rows), "--tenant", "acme", "--format", "csv"]
    arguments += ["--measurement", "link", "--entity-column", "entity_id"]
    done = without(of("frames", "forecast", "train"), COMMAND.format(arguments=arguments))
    assert (done.returncode, done.stderr) == (0, "")
    arguments = ["export", "-", "--tenant", "acme", "--format", "jsonl", *SPAN]
    done = without(of("frames", "forecast", "train"), COMMAND.format(arguments=arguments))
    assert json.loads(done.stdout)["fields"] == {"snr_db": 1.5}


@pytest.mark.usefixtures("data")
def test_nothing_is_predicted_by_default_without_the_extra():
    done = without(of("forecast"), COMMAND.format(arguments=["config", "print", "--json"]))
    settings = json.loads(done.stdout)
    families = settings["forecast.families"]
    assert families == {"value": [], "source": "default without the extra forecast"}
