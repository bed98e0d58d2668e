"""Pictures of the console with the fleet of `fleetcast demo`: `python -m … FOLDER`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from fleetcast.cli.demo.fleet import FADING_LINK, FULL_POOL
from tests.console.browser.driver import Console, browser

if TYPE_CHECKING:
    from collections.abc import Iterator

PNGQUANT = shutil.which("pngquant")
WIDTHS = {"wide": (1280, 800), "narrow": (400, 800)}
QUESTION = 'avg by (entity_id) (avg_over_time(snr_db{measurement="link"}[5m]))'
PLACE = {"measurement": "link", "entity": FADING_LINK}
POOL = {"measurement": "pool_interval", "entity": FULL_POOL, "family": "demand"}
_CONSOLE = re.compile(r"^Console +(?P<admin>\S+)/console/$")
_TOKEN = re.compile(r"^ +token +(?P<token>\S+)$")
_READ = re.compile(r"^Read .*'x-api-key: (?P<key>[^']+)' '(?P<http>[^']+)/topology")


class Picture(NamedTuple):
    """A view, and the element that shows that its content is there."""

    name: str
    view: str
    parameters: dict[str, str]
    content: str
    clicks: str = ""
    """A part to choose first."""


PICTURES = (
    Picture("entities-wide-light", "entities", {}, ".detail", "tbody tr[aria-rowindex='4']"),
    Picture("map-wide-dark", "entities", {"layout": "world"}, "canvas"),
    Picture("channels-wide-dark", "channels", {**PLACE, "seconds": "3600"}, "canvas"),
    Picture("ask-wide-light", "ask", {"query": quote(QUESTION), "seconds": "3600"}, "canvas"),
    Picture("forecasts-wide-light", "forecasts", {**PLACE, "family": "snr"}, "canvas"),
    Picture("outlook-wide-light", "outlook", {"threshold": "10"}, "tbody tr"),
    Picture("backtest-wide-dark", "backtest", {"family": "demand"}, "tbody tr"),
    Picture("refusals-wide-light", "refusals", {}, "[aria-label='Refusals by key']"),
    Picture("overview-wide-light", "overview", {}, ".card th a"),
    Picture("overview-narrow-light", "overview", {}, ".card th a"),
    Picture("forecasts-narrow-dark", "forecasts", POOL, "canvas"),
)


@contextmanager
def demo() -> Iterator[SimpleNamespace]:
    """Address, key and token of a running demo, which says them once its tour has ended."""
    command = [sys.executable, "-m", "fleetcast", "demo"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        found = {}
        try:
            while "key" not in found:
                line = process.stderr.readline()
                assert line, "the demo has ended"
                for pattern in (_CONSOLE, _TOKEN, _READ):
                    found |= match.groupdict() if (match := pattern.match(line.rstrip())) else {}
            yield SimpleNamespace(ready={"admin": found["admin"]}, **found)
        finally:
            process.terminate()


def be_refused(service: SimpleNamespace) -> None:
    """Sends requests with mistakes that users make."""
    for path, key, body in (
        *[("/telemetry", service.key, b"[")] * 4,
        *[("/topology/series?agg=max", service.key, None)] * 2,
        ("/topology", "ftk_sandbox_old", None),
    ):
        request = urllib.request.Request(service.http + path, body, {"x-api-key": key})  # noqa: S310 - ours
        request.add_header("Content-Type", "application/json")
        try:
            urllib.request.urlopen(request).close()  # noqa: S310 - ours
        except urllib.error.HTTPError as error:
            error.close()


def take(folder: Path) -> None:
    with demo() as service:
        for _ in range(8):
            be_refused(service)
            time.sleep(15)  # so that there is a course to be seen
        for scheme in ("light", "dark"):
            with browser(dark=scheme == "dark") as driver:
                console = Console(driver, service)
                console.resize(*WIDTHS["wide"])
                console.sign_in()
                for picture in PICTURES:
                    _, width, shown = picture.name.rsplit("-", 2)
                    if shown != scheme:
                        continue
                    console.resize(*WIDTHS[width])
                    console.view(picture.view, tenant="demo", **picture.parameters)
                    if picture.clicks:
                        console.find(picture.clicks).click()
                    console.wait(picture.content)
                    console.picture(folder / f"console-{picture.name}.png")
    if PNGQUANT is not None:  # a third of the bytes, and nobody sees it
        pictures = [str(folder / f"console-{picture.name}.png") for picture in PICTURES]
        subprocess.run([PNGQUANT, "--ext", ".png", "--force", "--strip", *pictures], check=True)


if __name__ == "__main__":
    take(Path(sys.argv[1]))
