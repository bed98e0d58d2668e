"""Public names: what a program that uses the package may rely on.

`public.txt` has them, and what they take. Lines may be added; a line that holds no longer, or is
taken out, breaks somebody's program and needs a new major version.
"""

import subprocess
import sys
import tomllib

import pytest

import fleetcast
from tests.package.public import FROZEN, NAMES, describe, keeps
from tests.tidy.files import ROOT


def test_public_names_stay_as_they_are():
    gone = [
        line for line, name in zip(FROZEN, NAMES, strict=True) if not keeps(line, describe(name))
    ]
    assert gone == []
    assert {name for name in NAMES if "." not in name} == set(fleetcast.__all__)


@pytest.mark.parametrize(
    ("before", "now", "kept"),
    [
        ("f(a, *, b=1)", "f(a, c=2, *, b=1, d=3)", True),
        ("f(a)", "f(a, b)", False),
        ("f(a)", "f(a, *, b)", False),
        ("f(a, *, b=1)", "f(a, *, b=2)", False),
        ("f(a, *, b=1)", "f(a)", False),
        ("f(a, b=1)", "f(b=1, a=2)", False),
        ("E(Exception)", "E(ValueError)", False),
    ],
)
def test_a_call_that_breaks_is_found(before, now, kept):
    assert keeps(before, now) is kept


def test_the_stub_has_the_names_of_the_package():
    stub = (ROOT / "python" / "fleetcast" / "__init__.pyi").read_text()
    named = {line.split(" as ")[1].rstrip(",") for line in stub.splitlines() if " as " in line}
    assert {*named, "__version__"} == set(fleetcast.__all__)


def test_a_name_is_loaded_when_it_is_asked_for():
    program = "import sys, fleetcast; print(*(n for n in sys.modules if n.startswith('fleetcast')))"
    done = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert done == "fleetcast\n"
    with pytest.raises(AttributeError, match="no attribute 'engines'"):
        _ = fleetcast.engines


def test_the_pages_say_what_each_name_is():
    pages = "".join((ROOT / "docs" / name).read_text() for name in ("python.md", "client.md"))
    assert [name for name in fleetcast.__all__ if f"`{name}" not in pages] == []


def test_the_version_is_that_of_the_workspace_and_in_the_changelog():
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]
    assert fleetcast.__version__ == workspace
    headings = [
        line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## [")
    ]
    assert headings[0].startswith(("## [Unreleased]", f"## [{workspace}] - "))
