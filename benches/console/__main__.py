"""Times of the console with 100,000 entities: `python -m benches.console`, after `make console`.

It prints how long the first chart, table and map take after the page was asked for, the frames
while a chart is zoomed, the bytes of the page, and the requests of each open view.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.console.browser.driver import Console, browser, missing
from tests.console.fleet import fleet
from tests.waiting import until

ENTITIES = 100_000
REPEATS = 5
OPEN_SECONDS = 60
STEPS = 60
LINK = "tenant=harbour&measurement=link&entity=link-1&seconds=21600"
SIGHTS = {
    "chart": (f"channels?{LINK}", ".chart canvas"),
    "table": ("entities?tenant=harbour", "tbody tr[aria-rowindex]:not(.coming)"),
    "map": ("entities?tenant=harbour&layout=world&measurement=ship", ".map canvas"),
}
OPENED = {
    "overview": "overview",
    "fleet": "entities?tenant=harbour",
    "map": "entities?tenant=harbour&layout=world&measurement=ship",
    "channels": f"channels?{LINK}",
    "ask": "ask?tenant=harbour&query=count(snr_db)",
    "storage": "storage",
}
# The milliseconds from the navigation to the first frame in which the view has what is looked for.
FIRST_SIGHT = """
const look = () => {
  const main = document.getElementById('main');
  if (main?.dataset.state === 'fresh' && document.querySelector('SELECTOR')) {
    requestAnimationFrame(() => { window.sight = performance.now(); });
  } else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
FRAMES = """
window.frames_ms = [];
let last = performance.now();
const frame = (now) => {
  window.frames_ms.push(now - last);
  last = now;
  window.framing = requestAnimationFrame(frame);
};
window.framing = requestAnimationFrame(frame);
"""
BYTES = """
const files = performance.getEntriesByType('resource').filter((of) => of.name.includes('/static/'));
return files.reduce((sum, of) => sum + of.decodedBodySize, 0);
"""
REQUESTS = (
    "return performance.getEntriesByType('resource').filter((of) => of.name.includes('/api/'))"
    ".length"
)


def first_sight(console: Console, address: str, selector: str) -> float:
    """Milliseconds from asking for the page, which the browser has not kept, to its content."""
    command = console.driver.execute_cdp_cmd
    source = {"source": FIRST_SIGHT.replace("SELECTOR", selector)}
    script = command("Page.addScriptToEvaluateOnNewDocument", source)
    command("Network.clearBrowserCache", {})
    console.driver.get("about:blank")
    console.driver.get(f"{console.base}#/{address}")
    took = until(lambda: console.script("return window.sight"))
    command("Page.removeScriptToEvaluateOnNewDocument", script)
    return float(took)


def mouse(console: Console, kind: str, x: float, y: float, buttons: int) -> None:
    event = {"type": kind, "x": x, "y": y, "buttons": buttons, "button": "left", "clickCount": 1}
    console.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)


def zoom_frames(console: Console) -> list[float]:
    """Milliseconds between frames while a part of a chart is drawn over, and then shown."""
    left, top, width, height = console.script(
        "const of = document.querySelector('.chart .u-over').getBoundingClientRect();"
        "return [of.left, of.top, of.width, of.height]"
    )
    y = top + height / 2
    console.script(FRAMES)
    mouse(console, "mousePressed", left + 0.2 * width, y, 1)
    for step in range(STEPS):
        mouse(console, "mouseMoved", left + (0.2 + 0.6 * step / STEPS) * width, y, 1)
    mouse(console, "mouseReleased", left + 0.8 * width, y, 0)
    until(lambda: console.script("return location.hash.includes('from=')"))
    until(lambda: console.state() == "fresh")
    frames = console.script("cancelAnimationFrame(window.framing); return window.frames_ms")
    return [float(each) for each in frames[1:]]


def main() -> None:
    reason = missing()
    if reason:
        sys.exit(reason)
    with (
        tempfile.TemporaryDirectory() as home,
        fleet(Path(home) / "data", terminal_count=ENTITIES) as service,
        browser() as driver,
    ):
        console = Console(driver, service)
        console.resize(1280)
        console.sign_in()
        print(f"{ENTITIES:,} entities, load average {os.getloadavg()[0]:.1f}")
        for name, (address, selector) in SIGHTS.items():
            times = [first_sight(console, address, selector) for _ in range(REPEATS)]
            print(f"first {name}: {statistics.median(times):.0f} ms, at most {max(times):.0f} ms")
        first_sight(console, *SIGHTS["chart"])
        print(f"bytes of scripts and styles: {console.script(BYTES):,}")
        frames = zoom_frames(console)
        late = sum(each > 50 for each in frames)
        print(
            f"frames while zooming: {len(frames)}, median {statistics.median(frames):.0f} ms,"
            f" longest {max(frames):.0f} ms, {late} later than 50 ms"
        )
        for name, address in OPENED.items():
            view, _, query = address.partition("?")
            pairs = (pair.split("=", 1) for pair in query.split("&") if pair)
            console.view(view, **dict(pairs))
            console.script("performance.clearResourceTimings()")
            time.sleep(OPEN_SECONDS)
            print(f"requests a second of {name}: {console.script(REQUESTS) / OPEN_SECONDS:.2f}")


if __name__ == "__main__":
    main()
