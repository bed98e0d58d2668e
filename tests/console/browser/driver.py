"""Chromium without a window, at the console of a service. Needs what `make console` installs."""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

    from tests.service.service import Service

MADE = Path(sys.prefix) / "console"
"""Environment that `make console` makes, beside ours."""
PACKAGES = next(iter(map(str, MADE.glob("lib/python3*/site-packages"))), "")
"""Packages of `requirements/console.txt`, which the tests' own environment does not have."""
AXE = MADE / "node_modules/axe-core/axe.min.js"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


def missing() -> str:
    """Reason that no browser can be had; empty where one can."""
    if not PACKAGES:
        return "no .venv/console: run make console"
    if CHROMIUM is None or DRIVER is None:
        return "no chromium or no chromedriver: apt-get install chromium chromium-driver"
    return ""


@contextmanager
def browser(*, dark: bool = False) -> Iterator[Chrome]:
    sys.path.append(PACKAGES)  # behind ours: it only adds what is missing
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService  # noqa: PLC0415 - where it is installed

    options = ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=ChromeService(DRIVER))
    driver.set_script_timeout(PATIENCE_SECONDS)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    try:
        yield driver
    finally:
        driver.quit()


class Console:
    """The console of a service in one browser."""

    def __init__(self, driver: Chrome, service: Service) -> None:
        self.driver = driver
        self.service = service
        self.base = f"{service.ready['admin']}/console/"
        self.token = service.token

    def resize(self, width: int, height: int = 800) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def sign_in(self) -> None:
        self.driver.get(self.base)
        self.find(".sign-in input").send_keys(self.token)
        self.find(".sign-in button").click()
        self.wait("nav a")

    def view(self, name: str, **parameters: str) -> None:
        """Opens a view and waits for its first answer."""
        query = "&".join(f"{key}={value}" for key, value in parameters.items())
        address = f"#/{name}?{query}" if query else f"#/{name}"
        self.driver.execute_script(
            "document.getElementById('main').dataset.state = 'leaving';"
            "if (location.hash === arguments[0]) location.hash = '#/none';"
            "location.hash = arguments[0];",
            address,
        )
        until(lambda: self.state() in ("fresh", "failed") and self.shown() == name)

    def state(self) -> str | None:
        return self.script("return document.getElementById('main').dataset.state")

    def shown(self) -> str | None:
        return self.script("return document.getElementById('main').dataset.view")

    def script(self, text: str, *arguments: object):
        return self.driver.execute_script(text, *arguments)

    def find(self, selector: str):
        return self.wait(selector)[0]

    def all(self, selector: str) -> list:
        return self.driver.find_elements("css selector", selector)

    def wait(self, selector: str) -> list:
        return until(lambda: self.all(selector))

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((at) => at.textContent)"
        return self.script(script, selector)

    def press(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def picture(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))

    def violations(self) -> list[str]:
        """Rules of axe that the page breaks, with the elements that do."""
        if not self.script("return typeof axe !== 'undefined'"):
            self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text()})
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']})"
            ".then((found) => done(found.violations), (error) => done([{id: String(error),"
            " nodes: []}]))"
        )
        return [
            f"{rule['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
            for rule in found
            for node in rule["nodes"] or [{"html": ""}]
        ]
