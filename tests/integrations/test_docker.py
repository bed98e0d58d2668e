"""The Dockerfile, as far as it can be looked at without running it (`make image` runs it)."""

import json
import tomllib

import pytest

from tests.tidy.files import ROOT

FOLDER = ROOT / "integrations" / "docker"


@pytest.fixture(scope="module")
def steps():
    lines = [
        line
        for line in (FOLDER / "Dockerfile").read_text().splitlines()
        if not line.startswith("#")
    ]
    text = "\n".join(lines).replace("\\\n", "")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line]


def test_the_service_is_not_root_and_is_asked_if_it_is_ready(steps):
    last = steps[max(at for at, (name, _) in enumerate(steps) if name == "FROM") :]
    found = dict(last)
    assert found["USER"] == "fleetcast"
    check = json.loads(found["HEALTHCHECK"].partition("CMD ")[2])
    assert "http://127.0.0.1:9090/readyz" in check[-1]
    assert json.loads(found["CMD"])[0] == "serve"


def test_its_extras_and_files_are_those_of_the_project(steps):
    text = "\n".join(rest for _, rest in steps)
    extras = text.partition(".whl)[")[2].partition("]")[0].split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras) <= project["optional-dependencies"].keys()
    assert (ROOT / "requirements" / "build.txt").exists()
    rust = text.partition("rust:")[2].partition("-")[0]
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert manifest["workspace"]["package"]["rust-version"] == rust
