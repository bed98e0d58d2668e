"""The console in a browser: how long until the first table stands, beside a table of a few rows.

    make console    # once: it installs the browser's driver
    python -m benches.service.console [--rounds 20]

Starts the real service with a tenant of 10,000 entities and one of 80, signs in, and opens the page
of entities anew again and again, both tenants in turn, the browser's cache warm as with any second
visit. The time is from the begin of navigation, by the browser's own clock, until a row of the
table has its text; the page of 80 is the reference, for what the browser itself takes. Then it
scrolls through all of the 10,000 and counts frames that came late.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from tests.console.browser.driver import Console, browser, missing
from tests.console.fleet import TERMINALS, fleet
from tests.waiting import until

FIRST_TABLE_MS_GOAL = 1_000
# Notes when a row has text, as soon as it has.
WATCH = """
const look = () => {
  const cell = document.querySelector('tbody tr[aria-rowindex] td');
  if (cell && cell.textContent.length > 1) { window.stood = performance.now(); return; }
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
SCROLL = """
const done = arguments[0];
const box = document.querySelector('.scroller');
const frames = [];
let before = performance.now();
const step = (now) => {
  frames.push(now - before);
  before = now;
  if (box.scrollTop + box.clientHeight >= box.scrollHeight - 1) { done(frames); return; }
  box.scrollTop += 900;
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""


def first_table_ms(console: Console, tenant: str) -> float:
    console.driver.get("about:blank")
    console.driver.get(f"{console.base}#/entities?tenant={tenant}&measurement=telemetry")
    return until(lambda: console.script("return window.stood"))


def measure(rounds: int) -> None:
    with (
        tempfile.TemporaryDirectory() as home,
        fleet(Path(home) / "data") as service,
        browser() as driver,
    ):
        console = Console(driver, service)
        console.resize(1280)
        console.sign_in()
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        times: dict[str, list[float]] = {"harbour": [], "buoys": []}
        for _ in range(rounds):
            for tenant, found in times.items():
                found.append(first_table_ms(console, tenant))
        first_table_ms(console, "harbour")
        frames = driver.execute_async_script(SCROLL)
    many, few = (statistics.median(found) for found in times.values())
    print(f"first table, {TERMINALS} entities: {many:.0f} ms, median of {rounds};", end=" ")
    print(f"of 80: {few:.0f} ms; {many / few:.2f} times (goal: {FIRST_TABLE_MS_GOAL} ms)")
    late = sum(frame > 50 for frame in frames)
    print(f"scrolled through all of them: {len(frames)} frames, {late} later than 50 ms,", end=" ")
    print(f"median {statistics.median(frames):.1f} ms, latest {max(frames):.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    reason = missing()
    if reason:
        sys.exit(reason)
    measure(rounds)


if __name__ == "__main__":
    main()
