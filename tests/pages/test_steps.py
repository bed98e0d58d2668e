"""The steps of the pages by task, as they stand, beside a running service."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages.blocks import blocks, pages
from tests.service.service import prepare, start
from tests.tidy.files import ROOT, short
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="the steps need curl")

LISTENERS = {"http": 8080, "grpc": 8443, "admin": 9090, "adapters": 8086}
KEY_PRINTED = "KEY=ftk_sandbox_…"
README = ROOT / "README.md"
# Parts of the output of a page's steps. Their exit status counts in any case.
SHOWN = {
    "send/telegraf.md": ['"entity_id":"gw-1"', '"cpu_usage":12.5'],
    "send/prometheus.md": ["204", '"entities":'],
    "send/opentelemetry.md": ["200", '"entities":'],
    "send/mqtt.md": [],
    "send/python.md": ['"entity_id":"link-1"', '"snr_db":12.5'],
    "see.md": ["fto_", "link-1", "12.5", '"openapi"'],
    "run.md": ["acme-yesterday", "restored"],
    "trouble.md": ["running"],
    "console.md": ["fto_"],
    "adapters.md": ["shape: (0, "],
    "operations.md": ["limits.tags_max", "Tags of a record."],
}
# Databases, object stores and measurements, which other tests have.
NOT_RUN = {"bench.md", "benchmarks.md", "scale-out.md"}


class Steps:
    """A folder with an installation in it, and the service that runs there."""

    def __init__(self, folder):
        self.folder = folder
        self.service = None
        self.key = ""

    def serve(self):
        listeners = [f"--{name}=127.0.0.1:0" for name in ("grpc", "admin")]
        self.service = start(
            *(self.folder / "fleetcast-data", self.key),
            *(*listeners, "--set", "adapters.address=127.0.0.1:0"),
        )

    def text(self, block):
        """A block with the addresses of the service and the folders of the test."""
        text = block.text.replace("/mnt/backup", str(self.folder / "backup"))
        for listener, port in LISTENERS.items():
            address = re.sub(r"^\w+://", "", self.service.ready[listener]) if self.service else ""
            text = text.replace(f"127.0.0.1:{port}", address)
        return text

    def run(self, block):
        """The output of a block that a reader would run; files are written."""
        text = self.text(block)
        if block.file:
            (self.folder / block.file).write_text(text)
        elif block.language in ("sh", "python"):
            program = ["bash", "-euo", "pipefail"] if block.language == "sh" else [sys.executable]
            bin_ = Path(sys.executable).parent
            done = subprocess.run(
                [*program, "-c", text],
                cwd=self.folder,
                env={**os.environ, "KEY": self.key, "PATH": f"{bin_}:{os.environ['PATH']}"},
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_SECONDS,
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            return done.stdout
        return ""


@pytest.fixture
def steps(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("FLEETCAST_")]:
        monkeypatch.delenv(name)
    made = Steps(tmp_path)
    yield made
    if made.service:
        made.service.end()


@pytest.mark.parametrize("page", SHOWN)
def test_the_steps_of_a_page_run_as_they_stand(steps, page):
    shown = blocks(ROOT / "docs" / page)
    steps.key = prepare(steps.folder / "fleetcast-data")
    (steps.folder / "key").write_text(steps.key)
    (steps.folder / "fleetcast-data" / "serve.log").touch(mode=0o600)  # doctor looks at modes
    for block in shown:
        if block.file and block.file.startswith("fleetcast-data/"):
            steps.run(block)  # read at the start of the service
    steps.serve()
    printed = "".join(steps.run(block) for block in shown)
    assert [text for text in SHOWN[page] if text not in printed] == [], printed


def test_every_page_with_steps_has_them_run():
    with_steps = {
        short(page).removeprefix("docs/")
        for page in pages()
        if any(block.language == "sh" for block in blocks(page))
    }
    assert with_steps - set(SHOWN) == {"README.md", *NOT_RUN}


def test_the_first_steps_of_the_readme_write_and_read(steps):
    making, asking = [
        block for block in blocks(README) if "fleetcast init" in block.text or "curl" in block.text
    ]
    assert "\nfleetcast serve" in making.text
    assert KEY_PRINTED in asking.text
    making = making._replace(text=re.sub(r"\nfleetcast serve.*", "", making.text))
    steps.key = re.findall(r"^ftk_\S+$", steps.run(making), re.MULTILINE)[0]
    steps.serve()
    asking = asking._replace(text=asking.text.replace(KEY_PRINTED, f"KEY={steps.key}"))
    printed = steps.run(asking)
    assert '"accepted_count":1,"rejected_count":0' in printed
    assert printed.count('"snr_db":11.5') == 1  # the newest sample
    assert printed.count('"snr_db":[11.5]') == 1  # the mean of the step
