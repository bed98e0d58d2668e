import json
import os

import pytest

from fleetcast.cli.main import run


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data directory that `init` made, which commands take from the environment."""
    for name in [name for name in os.environ if name.startswith("FLEETCAST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FLEETCAST_DATA", str(tmp_path / "data"))
    assert run(["init"]) == 0
    return tmp_path / "data"


@pytest.fixture
def call(data, capsys):  # noqa: ARG001 - commands find it in the environment
    """Runs a command and gives its JSON answer."""

    def call(*arguments, status=0):
        capsys.readouterr()
        assert run([*map(str, arguments), "--json"]) == status
        return json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def fail(data, capsys):  # noqa: ARG001 - see call
    """Runs a command that fails and gives its lines on stderr."""

    def fail(*arguments, status=1):
        capsys.readouterr()
        assert run([*map(str, arguments)]) == status
        out, err = capsys.readouterr()
        assert out == ""
        assert "Traceback" not in err
        assert err.startswith("fleetcast: ")
        return err.splitlines()

    return fail
