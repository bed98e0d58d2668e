"""Pictures of each view, wide and narrow, light and dark: `python -m … FOLDER`."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from tests.console.browser.driver import Console, browser
from tests.console.fleet import fleet, terminals

PNGQUANT = shutil.which("pngquant")
WIDTHS = {"wide": (1280, 800), "narrow": (400, 800)}
QUESTION = 'avg by (entity_id) (avg_over_time(snr_db{measurement="link"}[5m]))'
VIEWS = {
    "overview": {},
    "tenants": {},
    "entities": {"tenant": "harbour"},
    "map": {"tenant": "harbour", "measurement": "ship", "layout": "map", "field": "knots"},
    "channels": {"tenant": "harbour", "measurement": "link", "entity": "link-1"},
    "ask": {"tenant": "harbour", "query": quote(QUESTION), "seconds": "21600"},
    "forecasts": {"tenant": "harbour", "measurement": "link", "entity": "link-1", "family": "snr"},
    "demand": {
        "tenant": "lighthouse",
        "measurement": "pool_interval",
        "entity": "pool-1",
        "family": "demand",
        "horizon": "60",
    },
    "outlook": {"tenant": "harbour", "threshold": "21"},
    "backtest": {"tenant": "harbour"},
    "storage": {},
    "processes": {},
    "refusals": {},
}


def traffic(service) -> None:
    """Some writes that are taken, and some requests that are refused."""
    now = datetime.now(UTC)
    for key, count in ((service.key, 900), (service.other_key, 150)):
        late = {"measurement": "telemetry", "time": "1999-01-01", "fields": {"snr_db": 9.5}}
        service.post([*terminals(now, count), late], key=key)
    for _ in range(random.Random().randrange(9)):
        service.get("/topology", key="ftk_sandbox_no")
    for _ in range(3):
        service.post(b"[")
        service.get("/nowhere")


def take(folder: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as home,
        fleet(Path(home) / "data", "--set", "limits.lockout_failures=0") as service,
    ):
        for _ in range(20):
            traffic(service)
            time.sleep(4)  # so that there is a course to be seen
        for dark in (False, True):
            with browser(dark=dark) as driver:
                console = Console(driver, service)
                console.resize(*WIDTHS["wide"])
                driver.get(console.base)
                console.wait(".sign-in")
                console.picture(folder / f"console-sign-in-{'dark' if dark else 'light'}.png")
                console.sign_in()
                for view, parameters in VIEWS.items():
                    traffic(service)
                    name = {"demand": "forecasts", "map": "entities"}.get(view, view)
                    for width, size in WIDTHS.items():
                        console.resize(*size)
                        console.view(name, **parameters)
                        if view in ("entities", "storage") and width == "wide":
                            console.wait("tbody tr[aria-selected]")[
                                3 if view == "entities" else 0
                            ].click()
                            console.wait(".detail")
                        scheme = "dark" if dark else "light"
                        console.picture(folder / f"console-{view}-{width}-{scheme}.png")
    if PNGQUANT is not None:  # a third of the bytes, and nobody sees it
        pictures = [str(path) for path in folder.glob("console-*.png")]
        subprocess.run([PNGQUANT, "--ext", ".png", "--force", "--strip", *pictures], check=True)


if __name__ == "__main__":
    take(Path(sys.argv[1]))
