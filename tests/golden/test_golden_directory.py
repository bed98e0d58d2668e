"""A data directory that fleetcast 0.3.0 made: its records lay open and its planes were unbound."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from fleetcast.cli.main import run
from fleetcast.errors import StoreDamaged
from fleetcast.forecast.serving.embedded import EmbeddedPredictions
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from fleetcast.security.master_key import read_master_key
from tests.service.service import UNLIMITED, start

from .make import HERE

GOLDEN = HERE / "0.3.0-directory"
ISSUED = json.loads((GOLDEN / "issued.json").read_text())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(GOLDEN, tmp_path / "data"))
    (copy / "master.key").chmod(0o600)  # git keeps no modes
    return copy


def test_the_service_takes_it_over_as_it_starts(data: Path) -> None:
    for _ in range(2):
        service = start(data, ISSUED["key"], "--grpc", "off", *UNLIMITED)
        try:
            assert service.get("/topology").json["tenant_key"] == "acme"
            usage = service.get("/account/state").json["usage"]["requests_total"]
            assert usage >= 4  # three writes, before
        finally:
            service.stop()
    with opened(DataDirectory(data), {}) as installation:
        keys = {key.key_id: key.ended(0) for key in installation.keys.all("acme")}
        assert keys[ISSUED["revoked_key_id"]] == "revoked"
        assert keys[ISSUED["key"].split("_")[2]] is None
    predictions = EmbeddedPredictions(data / "forecast", read_master_key(data / "master.key"))
    with closing(predictions):
        predictions.check()
        assert not predictions.lacks_release("snr")


def test_names_and_keys_are_bound_from_then_on(data: Path) -> None:
    """B10: two tenants' planes are not exchanged, by their files of before either."""
    with opened(DataDirectory(data), {}) as installation:
        accounts = [tenant.account_id for tenant in installation.tenants.all()]
        rows = [installation.engine.plane(account, "x").stats().rows for account in accounts]
        assert rows == [3, 0]
    first, other = (data / "planes" / account for account in accounts)
    for source in (GOLDEN / "planes" / accounts[0], first):
        shutil.rmtree(other)
        shutil.copytree(source, other)
        with opened(DataDirectory(data), {}) as installation, pytest.raises(StoreDamaged):
            installation.engine.plane(accounts[1], "other")


def test_what_lay_open_is_not_taken_over_again(data: Path, capsys) -> None:
    """B10: whoever can write the files of the accounts cannot put the open ones back."""
    assert run(["tenant", "list", "--data", str(data)]) == 0
    shutil.copy(GOLDEN / "control" / "data.mdb", data / "control" / "data.mdb")
    capsys.readouterr()
    assert run(["tenant", "list", "--data", str(data)]) == 1
    said = capsys.readouterr().err
    assert "has no seal" in said
    assert f"remove {data / 'accounts.revision'}" in said
    (data / "accounts.revision").unlink()
    assert run(["tenant", "list", "--data", str(data)]) == 0


def test_forecasts_that_are_damaged_keep_it_from_nothing_once_they_are_moved_away(
    data: Path, capsys
) -> None:
    (data / "forecast" / "store" / "data.mdb").write_bytes(bytes(65_536))
    for command in (["tenant", "list"], ["doctor"]):
        assert run([*command, "--data", str(data)]) == 1
        said = "".join(capsys.readouterr())
        assert "forecasts are made anew" in said
        assert "internal" not in said
    shutil.rmtree(data / "forecast" / "store")
    assert run(["tenant", "list", "--data", str(data)]) == 0


def test_another_master_key_is_refused_before_anything_is_taken_over(data: Path, capsys) -> None:
    (data / "master.key").write_text(f"{bytes(32).hex()}\n")
    assert run(["tenant", "list", "--data", str(data)]) == 1
    assert "the master key is not the one" in capsys.readouterr().err
    shutil.copy(GOLDEN / "master.key", data / "master.key")
    assert run(["tenant", "list", "--data", str(data)]) == 0
