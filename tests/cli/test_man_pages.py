"""Pages for `man`, which the Debian package installs: one of each command, and groff reads them."""

import shutil
import subprocess
import sys

import click
import pytest

from fleetcast.cli.main import fleetcast
from tests.tidy.files import ROOT

GROFF = shutil.which("groff")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, ROOT / "tools" / "manpages", folder], check=True)
    return {page.stem: page for page in folder.iterdir()}


def names(command, path):
    """Each command below a command, as its page is named."""
    found = {"-".join(path)}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found |= names(command.get_command(context, name), [*path, name])
    return found


def test_each_command_has_a_page_with_its_options(pages):
    assert set(pages) == names(fleetcast, ["fleetcast"])
    create = pages["fleetcast-key-create"].read_text()
    assert "Issue a key" in create
    assert r"\fB\-\-scope\fP" in create
    assert r"\fBkey\fP" in pages["fleetcast"].read_text()


@pytest.mark.skipif(GROFF is None, reason="no groff here: apt-get install groff-base")
def test_groff_reads_each_page_without_a_warning(pages):
    for page in pages.values():
        command = [GROFF, "-K", "utf8", "-man", "-ww", "-z", page]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, ""), page.name
