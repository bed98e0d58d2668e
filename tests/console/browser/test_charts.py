"""Charts in a browser: what is drawn, read from the pixels, and what a user does with them."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from urllib.parse import parse_qs

import pytest

from tests.console.fleet import HOLE
from tests.waiting import until

LINK = {"tenant": "harbour", "measurement": "link", "entity": "link-1"}
BEACON = {"tenant": "harbour", "measurement": "beacon", "entity": "beacon-1"}
SILENT = BEACON | {"entity": "beacon-2"}
POOL = {"tenant": "lighthouse", "measurement": "pool_interval", "entity": "pool-1"}
WINDOWS = ("900", "3600", "21600", "86400", "604800", "2592000")
CHARTS = ".chart .u-over"
# Columns of a chart's plot that have a pixel in the colour of a line, as shares of its width.
DRAWN = """
const [chart, line] = arguments;
const canvas = document.querySelectorAll('.chart canvas')[chart];
const over = document.querySelectorAll('.chart .u-over')[chart];
const [left, width] = [over.offsetLeft * devicePixelRatio, over.offsetWidth * devicePixelRatio];
const hex = getComputedStyle(document.documentElement).getPropertyValue(`--line-${line}`).trim();
const wanted = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const height = over.offsetHeight * devicePixelRatio;
// A copy made to be read: the browser warns of many reads of a canvas that is drawn on.
const copy = new OffscreenCanvas(width, height).getContext('2d', {willReadFrequently: true});
copy.drawImage(canvas, -left, 0);
const data = copy.getImageData(0, 0, width, height).data;
const found = [];
for (let x = 0; x < width; x += 1) {
  for (let y = 0; y < height; y += 1) {
    const at = 4 * (y * width + x);
    if (wanted.every((of, part) => Math.abs(of - data[at + part]) < 12) && data[at + 3] > 200) {
      found.push(x / width);
      break;
    }
  }
}
return found;
"""


@pytest.fixture(autouse=True)
def wide(console):
    console.resize(1280)


def drawn(console, chart=0, line=1):
    """Shares of the width at which a line is drawn, once it is."""
    return until(lambda: console.script(DRAWN, chart, line))


def stretches(shares, hole=0.015):
    """First and last share of each stretch without a hole."""
    ends = [0, *(at for at, (a, b) in enumerate(pairwise(shares), 1) if b - a > hole), len(shares)]
    return [(shares[a], shares[b - 1]) for a, b in pairwise(ends)]


def address(console):
    """Parameters of the address."""
    hash_ = console.script("return location.hash")
    return {name: values[-1] for name, values in parse_qs(hash_.partition("?")[2]).items()}


def drag(console, chart, begin, end):
    """Draws over a part of a chart with the mouse."""
    box = console.script(
        "const of = document.querySelectorAll(arguments[0])[arguments[1]].getBoundingClientRect();"
        "return [of.left, of.top, of.width, of.height]",
        CHARTS,
        chart,
    )
    y = box[1] + box[3] / 2
    mouse(console, "mouseMoved", box[0] + begin * box[2], y, 0)
    mouse(console, "mousePressed", box[0] + begin * box[2], y, 1)
    for part in (0.25, 0.5, 0.75, 1):
        mouse(console, "mouseMoved", box[0] + (begin + part * (end - begin)) * box[2], y, 1)
    mouse(console, "mouseReleased", box[0] + end * box[2], y, 1)


def mouse(console, kind, x, y, count, clicks=1):
    console.driver.execute_cdp_cmd(
        "Input.dispatchMouseEvent",
        {
            "type": kind,
            "x": x,
            "y": y,
            "button": "left" if count else "none",
            "buttons": count,
            "clickCount": clicks,
        },
    )


def test_channels_are_a_mean_within_a_band_that_ends_at_a_hole(console):
    console.view("channels", **LINK, seconds="21600")
    names = until(lambda: console.texts(".chart strong"))
    assert names == ["modem_temperature_c", "received_dbm", "snr_db", "throughput_mbps"]
    before, after = stretches(drawn(console, 2))
    assert after[0] - before[1] == pytest.approx(len(HOLE) / 360, abs=0.02)
    assert console.texts(".unit")[0] == "mean of 30s, minimum to maximum"


@pytest.mark.parametrize("seconds", WINDOWS)
def test_telemetry_of_one_minute_is_a_line_in_every_window(console, seconds):
    console.view("channels", **BEACON, seconds=seconds)
    shares = drawn(console, 1)
    assert len(stretches(shares)) == 1
    # The fleet was written some minutes ago, and its newest value is a minute older.
    assert shares[-1] - shares[0] > min(100 * 60 / int(seconds), 0.3) - 0.01


def test_an_entity_that_fell_silent_leaves_its_part_of_the_window_empty(console):
    console.view("channels", **SILENT, seconds="21600")
    ((_, last),) = stretches(drawn(console, 1))
    assert last == pytest.approx(1 - 90 / 360, abs=0.1)


def test_values_of_fifteen_minutes_are_seen_in_a_window_of_six_hours(console):
    console.view("channels", **POOL, seconds="21600")
    ((first, last),) = stretches(drawn(console), hole=0.06)
    assert last - first > 0.8


def test_two_entities_have_a_line_and_a_name_each(console):
    console.view("channels", **LINK, more=json.dumps(["link-2"]), seconds="3600")
    until(lambda: console.texts(".chart:first-child .label") == ["link-1", "link-2"])
    assert drawn(console, 0, 1)
    assert drawn(console, 0, 2)
    console.find(".chart:first-child .legend li:nth-child(2) button").click()
    until(lambda: not console.script(DRAWN, 0, 2))
    assert drawn(console, 0, 1)
    console.find(".chips button").click()
    until(lambda: console.texts(".chart:first-child .label") == ["mean"])


def test_channels_share_a_chart_and_are_chosen(console):
    console.view("channels", **LINK, layout="one", seconds="3600")
    until(lambda: len(console.texts(".label")) == 4)
    console.find("summary").click()
    console.wait(".ticks input")[0].click()
    until(lambda: console.texts(".label") == ["received_dbm", "snr_db", "throughput_mbps"])
    assert json.loads(address(console)["fields"])[0] == "received_dbm"


def test_a_drag_zooms_all_charts_and_a_double_click_goes_back(console):
    console.view("channels", **LINK, seconds="21600")
    drawn(console)
    drag(console, 0, 0.65, 0.9)
    zoomed = until(lambda: address(console).get("from") and address(console))
    until(lambda: console.texts(".unit")[0].startswith("mean of 15s"))
    (begin, _), *_ = stretches(drawn(console, 1), hole=1)
    assert begin < 0.05
    drag(console, 1, 0.25, 0.75)
    closer = until(lambda: (now := address(console))["from"] > zoomed["from"] and now)
    assert closer["to"] < zoomed["to"]
    box = console.find(".chart .u-over").rect
    mouse(console, "mouseMoved", box["x"] + 100, box["y"] + 50, 0)
    for clicks in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            mouse(console, kind, box["x"] + 100, box["y"] + 50, 1, clicks)
    until(lambda: address(console)["from"] == zoomed["from"])
    console.find(".window button").click()
    until(lambda: "from" not in address(console))


def test_a_window_is_typed(console):
    day = (datetime.now(UTC) - timedelta(days=20)).date()
    console.view("channels", **LINK, **{"from": f"{day}T00:00:00", "to": f"{day}T01:00:00"})
    assert until(lambda: console.texts(".notice strong")) == [
        "No number was measured in this window."
    ]
    ends = console.all(".window input")
    assert [end.get_attribute("value") for end in ends] == [
        f"{day}T00:00",
        f"{day}T01:00",
    ]


def test_charts_share_a_cursor_and_are_read_with_keys(console):
    console.view("channels", **LINK, seconds="3600")
    drawn(console)
    console.script("document.querySelector('.plot').focus()")
    console.press("\ue011")
    first = console.texts(".reading")
    assert len(set(first)) == 1
    console.press("\ue014")
    second = console.texts(".reading")
    assert len(set(second)) == 1
    assert second != first
    assert second[0] in console.find(".plot").get_attribute("aria-label")


def test_values_are_a_table_and_raw_in_a_short_window(console):
    console.view("channels", **LINK, layout="table", seconds="21600")
    assert "snr_db max" in until(lambda: console.texts("thead th"))
    console.view("channels", **LINK, layout="table", seconds="900")
    names = ["modem_temperature_c", "received_dbm", "snr_db", "throughput_mbps"]
    assert until(lambda: (shown := console.texts("thead th"))[2:] == names and shown)


def test_what_is_shown_is_saved(console, tmp_path):
    console.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    console.view("channels", **LINK, seconds="3600")
    drawn(console)
    for button in console.all(".filters .actions button"):
        button.click()

    def saved():
        parts = [tmp_path / f"harbour-link-1.{kind}" for kind in ("csv", "json", "png")]
        return all(part.exists() and part.stat().st_size for part in parts) and parts

    text, document, picture = until(saved)
    rows = list(csv.DictReader(text.read_text().splitlines()))
    assert rows[0]["entity_id"] == "link-1"
    assert float(rows[0]["snr_db min"]) <= float(rows[0]["snr_db mean"])
    assert len(json.loads(document.read_text())) == len(rows) > 200
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_labels_of_values_have_the_prefix_that_fits(console):
    script = (
        "const done = arguments[1];"
        "const base = document.querySelector('script[type=module]').src;"
        "import(new URL('scale.js', base)).then((of) => done(arguments[0].map(of.valueLabels)))"
    )
    sizes = [[0, 2e9, 4e9], [4.2e12, 4.2005e12], [0, 2e-6], [6.5, 7.0], [-60, -40], [5000, 6000]]
    sizes += [[11.5, 11.75, 12.0], [1.5e10, 1.75e10]]
    assert console.driver.execute_async_script(script, sizes) == [
        ["0", "2G", "4G"],
        ["4.2000T", "4.2005T"],
        ["0", "2µ"],
        ["6.5", "7.0"],
        ["-60", "-40"],
        ["5000", "6000"],
        ["11.50", "11.75", "12.00"],
        ["15.0G", "17.5G"],
    ]


def test_forecasts_are_a_band_over_what_was_measured_and_a_fan(console):
    pytest.importorskip("onnxruntime")
    console.view("forecasts", **LINK, family="snr", horizon="15")
    # One line covers parts of another.
    _, past, fan = (stretches(drawn(console, 0, line), hole=0.1) for line in (1, 2, 3))
    assert past[-1][1] <= fan[0][0] + 0.02
    assert fan[-1][1] > 0.97
    assert "Nothing of them is kept." in console.texts(".charts .help")[0]
    assert len(console.texts(".legend .label")) == 3


def test_why_there_is_no_forecast_is_said_in_words(console):
    pytest.importorskip("onnxruntime")
    record = {
        "measurement": "link",
        "time": "2026-01-01T00:00:00Z",
        "tags": {"entity_id": "link-old"},
        "fields": {"snr_db": 9.5},
    }
    assert console.service.post([record]).status == 202
    console.view("forecasts", **(LINK | {"entity": "link-old"}), family="snr")
    assert console.texts(".notice strong") == ["There is no forecast of link-old now."]
    assert "The newest link of link-old is" in console.texts(".notice p")[0]
