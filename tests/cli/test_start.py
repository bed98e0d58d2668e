"""Commands start without the libraries that only a server, a client or a forecast needs."""

import json
import subprocess
import sys

import pytest

from fleetcast.cli.main import fleetcast, run

HEAVY = {
    *("asyncio", "cryptography", "falcon", "google", "grpc", "gunicorn"),
    *("numpy", "onnxruntime", "polars", "sgp4"),
}
CONTROL = [
    ["--version"],
    ["tenant", "list"],
    ["tenant", "show", "acme"],
    ["tenant", "set", "acme", "--plan", "free"],
    ["key", "create", "acme", "--scope", "topology:read"],
    ["key", "list", "acme"],
    ["config", "print"],
    ["config", "check"],
    ["stats"],
    ["status"],
    ["completion", "fish"],
    ["compact"],
    ["verify"],
]
PROGRAM = """
import contextlib, json, os, sys
from fleetcast.cli.main import run
loaded = []
for command in json.loads(sys.argv[1]):
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        assert run(command) == (command == ["status"]), command
    loaded.append(sorted({name.partition(".")[0] for name in sys.modules}))
print(json.dumps(loaded))
"""


@pytest.mark.usefixtures("data")
def test_no_control_command_loads_a_heavy_library(call):
    call("tenant", "create", "acme")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(CONTROL)],
        stdout=subprocess.PIPE,
        check=True,
    )
    loaded = zip(CONTROL, json.loads(done.stdout), strict=True)
    assert [(command, HEAVY & set(names)) for command, names in loaded if HEAVY & set(names)] == []


@pytest.mark.parametrize(("wrong", "meant"), [("sever", "serve"), ("exprot", "export")])
def test_a_misspelt_command_is_told_what_may_be_meant(wrong, meant, capsys):
    assert run([wrong]) == 2
    assert f"Did you mean '{meant}'" in capsys.readouterr().err


def test_every_command_is_found_by_its_name():
    names = fleetcast.list_commands(None)
    assert [fleetcast.get_command(None, name).name for name in names] == names == sorted(names)
