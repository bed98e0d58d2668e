"""Each view in a browser, with a fleet of ten thousand terminals."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from tests.console.fleet import TERMINALS
from tests.waiting import until

from .driver import AXE

LINK = {"tenant": "harbour", "measurement": "link", "entity": "link-1"}
FORECAST = {**LINK, "family": "snr", "horizon": "15"}
POOL = {"tenant": "lighthouse", "measurement": "pool_interval", "entity": "pool-1"}
DEMAND = {**POOL, "family": "demand", "horizon": "60"}
QUESTION = quote('last_over_time({measurement="link"}[1d])')
VIEWS = [
    ("overview", {}),
    ("tenants", {}),
    ("entities", {"tenant": "harbour"}),
    ("entities", {"tenant": "harbour", "measurement": "ship", "layout": "map"}),
    ("channels", LINK),
    ("ask", {"tenant": "harbour"}),
    ("ask", {"tenant": "harbour", "query": QUESTION}),
    ("forecasts", FORECAST),
    ("forecasts", DEMAND),
    ("outlook", {"tenant": "harbour"}),
    ("backtest", {"tenant": "harbour"}),
    ("backtest", {"tenant": "buoys"}),
    ("storage", {}),
    ("processes", {}),
    ("refusals", {}),
]
ROWS = "tbody tr[aria-rowindex]"


@pytest.mark.parametrize(("view", "parameters"), VIEWS)
@pytest.mark.parametrize("width", [1600, 1280, 760, 400])
def test_a_view_fits_its_window_and_breaks_no_rule_of_axe(console, view, parameters, width):
    console.resize(width)
    console.view(view, **parameters)
    assert console.state() == "fresh"
    assert console.script("return document.documentElement.scrollWidth") <= width
    assert console.texts("main .failure") == []
    if not AXE.exists():
        pytest.skip("no axe-core, which make console installs where there is an npm")
    assert console.violations() == []


def test_no_script_failed_and_no_policy_was_broken(console):
    console.driver.get_log("browser")  # of tests before, some of which asked in vain
    console.driver.refresh()
    console.wait("nav a")
    for view, parameters in VIEWS:
        console.view(view, **parameters)
    said = [line["message"] for line in console.driver.get_log("browser")]
    assert said == []


def test_tenants_are_ordered_searched_and_opened(console):
    console.resize(1280)
    console.view("tenants")
    assert (
        console.script("return document.querySelector('table').getAttribute('aria-rowcount')")
        == "8"
    )
    assert console.texts(".figures dd")[0] == "7"
    console.find("th[data-sort=tenant] button").click()
    until(lambda: console.texts(f"{ROWS} td:first-child")[:2] == ["buoys", "harbour"])
    console.find("th[data-sort=tenant] button").click()
    until(lambda: console.texts(f"{ROWS} td:first-child")[0] == "tugs-west")
    assert console.find("th[data-sort=tenant]").get_attribute("aria-sort") == "descending"
    console.find(".filters input").send_keys("tug")
    until(lambda: console.texts(f"{ROWS} td:first-child") == ["tugs-west", "tugs-east"])
    console.all(ROWS)[1].click()
    until(lambda: console.shown() == "entities" and console.texts(".total") == ["120 entities"])


def test_ten_thousand_entities_are_a_few_rows_until_somebody_scrolls(console):
    console.resize(1280)
    console.view("entities", tenant="harbour", measurement="telemetry")
    until(lambda: console.texts(".total") == [f"{TERMINALS:,} entities"])
    assert len(console.all(ROWS)) < 60
    console.script("document.querySelector('.scroller').scrollTop = 5000 * 30")
    until(lambda: "ut-05000" in console.texts(f"{ROWS} td:first-child"))
    assert len(console.all(ROWS)) < 60
    line = next(line for line in console.texts(ROWS) if line.startswith("ut-05000"))
    assert "downlink_mbps" in line


def test_a_table_is_walked_with_keys(console):
    console.resize(1280)
    console.view("entities", tenant="harbour", measurement="telemetry")
    until(lambda: console.texts(f"{ROWS} td:first-child")[:1] == ["ut-00000"])

    def focused():
        return console.script("return document.activeElement.cells?.[0].textContent")

    console.script("document.querySelector('tbody tr[tabindex=\"0\"]').focus()")
    for key, expected in (
        ("\ue015", "ut-00001"),
        ("\ue015", "ut-00002"),
        ("\ue013", "ut-00001"),
        ("\ue010", "ut-09999"),
        ("\ue013", "ut-09998"),
        ("\ue011", "ut-00000"),
    ):
        console.press(key)
        until(lambda expected=expected: focused() == expected)
    console.press("\ue00f")
    assert focused() > "ut-00005"
    console.press("\ue007")
    chosen = focused()
    until(lambda: console.texts(".detail h2") == [chosen])
    console.find(".detail button.quiet").click()
    until(lambda: focused() == chosen)


def test_the_first_stop_of_the_keyboard_skips_to_the_content(console):
    console.view("tenants")
    console.script("document.activeElement.blur(); window.scrollTo(0, 0)")
    console.driver.execute_cdp_cmd("Page.bringToFront", {})
    console.script("document.querySelector('.skip').focus()")
    assert console.script("return document.querySelector('.skip').offsetLeft") >= 0
    console.press("\ue007")
    assert console.script("return document.activeElement.id") == "main"
    assert console.shown() == "tenants"


def test_the_search_finds_an_entity_and_shows_all_of_its_state(console):
    console.resize(1280)
    console.view("entities", tenant="harbour")
    console.all(".filters input")[1].send_keys("UT-07777")
    until(lambda: console.texts(f"{ROWS} td:first-child") == ["ut-07777"])
    console.all(ROWS)[0].click()
    until(lambda: console.texts(".detail h2") == ["ut-07777"])
    assert "region" in console.texts(".detail th")
    assert "temperature_c" in console.texts(".detail th")
    console.all(".filters input")[1].clear()
    console.all(".filters input")[1].send_keys("nobody\n")
    assert until(lambda: console.texts(".notice strong")) == ["No entity is like this."]


def test_storage_says_what_is_due(console):
    console.resize(1280)
    console.view("storage")
    console.wait(ROWS)[0].click()
    until(lambda: console.texts(".detail h2") == ["harbour"])
    assert "Oldest in the log" in console.texts(".detail th")


def test_processes_are_a_tree(console):
    console.view("processes")
    assert console.texts(".figures dd")[0] == "ready"
    assert console.texts(".plain tbody th")[0] == "supervisor"
    assert {"http", "maintenance", "admin"} < set(console.texts(".plain tbody th"))


def test_refusals_are_counted_by_code(console):
    console.service.get("/topology", key="ftk_sandbox_no")
    console.service.post(b"[")
    console.view("refusals")
    assert "auth_failed" in until(lambda: console.texts(".plain tbody th"))
    assert "The key is missing, wrong," in " ".join(console.texts(".reasons .pairs td"))
    keys = "[aria-label='Refusals by key'] tbody"
    assert "schema_faults" in console.texts(f"{keys} td")
    console.find(f"{keys} th a").click()
    until(lambda: console.texts(f"{ROWS} td:first-child") == ["harbour"])


def test_what_a_tenant_named_is_never_markup(console):
    name = "<img src=x onerror=alert(1)>"
    tags = {"entity_id": name, "<b>tag</b>": "<script>1</script>"}
    record = {"measurement": "weather", "time": "2026-01-01", "tags": tags, "fields": {name: 1.5}}
    assert console.service.post([record]).status == 202
    console.view("entities", tenant="harbour", measurement="weather")
    until(lambda: name in console.texts(f"{ROWS} td:first-child"))
    console.all(ROWS)[0].click()
    until(lambda: console.texts(".detail h2") == [name])
    assert console.all("main img, main script, main b") == []
    console.view("channels", tenant="harbour", measurement="weather", seconds="2592000")
    assert console.all("main img") == []


def test_the_overview_has_the_way_to_what_it_names(console):
    console.resize(1280)
    console.view("overview")
    assert until(lambda: "harbour" in console.texts(".card td, .card th"))
    until(lambda: "fleetcast doctor looks" not in " ".join(console.texts(".card")))
    console.find(".card th a").click()
    until(lambda: console.shown() == "entities")


def test_the_fleet_is_filtered_and_sorted_by_the_service(console):
    console.resize(1280)
    ids = f"{ROWS} td:first-child"
    console.view("entities", tenant="harbour", measurement="ship")
    until(lambda: console.texts(".total") == ["60 entities"])
    console.find("th[data-sort=time] button").click()
    until(lambda: console.texts(ids)[0] == "ship-07")
    console.view("entities", tenant="harbour", measurement="ship", silent="3600")
    until(lambda: console.texts(ids) == ["ship-07"])
    console.view("entities", tenant="harbour", tag="flag%3Dno", field="knots", most="3")
    until(lambda: console.texts(".total") == ["6 entities"])
    console.find("th[data-sort='field:knots'] button").click()
    until(lambda: console.texts(ids)[0] == "ship-01")
    console.find("th[data-sort='field:knots'] button").click()
    assert until(lambda: (found := console.texts(ids))[0] == "ship-03" and found)[5] == "ship-41"


def test_a_ship_on_the_map_is_named_and_opened(console):
    console.resize(1280)
    console.view("entities", tenant="harbour", measurement="ship", layout="map", field="knots")
    until(lambda: console.texts(".total") == ["60 of 60 entities have a place"])
    assert console.texts(".legend li")[0] == "knots:"
    assert len(console.texts(".legend li")) == 1 + 5
    # Over the map from the top, row by row, until a ship is under the pointer.
    named = console.script(
        "const canvas = document.querySelector('.map canvas');"
        "const box = canvas.getBoundingClientRect();"
        "for (let y = 2; y < box.height; y += 6) for (let x = 2; x < box.width; x += 6) {"
        "  const at = {clientX: box.left + x, clientY: box.top + y, bubbles: true};"
        "  canvas.dispatchEvent(new PointerEvent('pointermove', at));"
        "  const said = document.querySelector('.map output').textContent;"
        "  if (said) { canvas.dispatchEvent(new MouseEvent('click', at)); return said; }"
        "}"
    )
    assert re.match(r"ship-\d\d, ship, .* old, knots", named)
    assert until(lambda: console.texts(".detail h2")) == [named.partition(",")[0]]
    console.view("entities", tenant="harbour", measurement="link", layout="map")
    assert until(lambda: console.texts(".notice strong")) == ["No entity has a place."]


def test_satellites_have_their_ground_tracks_on_the_map(console):
    now = datetime.now(UTC)
    records = [
        {
            "measurement": "satellite",
            "time": (now - timedelta(minutes=minute)).isoformat(),
            "tags": {"entity_id": f"sat-{number}"},
            "fields": {"lat": 50.0 - minute, "lon": (100 + 60 * number + 3.0 * minute) % 360 - 180},
        }
        for minute in range(40)
        for number in range(3)
    ]
    assert console.service.post(records).status == 202
    console.resize(1280)
    console.view("entities", tenant="harbour", measurement="satellite", layout="world", field="lat")
    until(lambda: console.texts(".total") == ["3 of 3 entities have a place"])
    drawn = (
        "const canvas = document.querySelector('.map canvas');"
        "const style = getComputedStyle(document.documentElement);"
        "const hex = style.getPropertyValue('--ramp-1').trim();"
        "const wanted = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));"
        "const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        "let found = 0;"
        "for (let at = 0; at < data.length; at += 4)"
        "  if (wanted.every((of, part) => Math.abs(of - data[at + part]) < 40)) found += 1;"
        "return found;"
    )
    points_px = 3 * 50
    until(lambda: console.script(drawn) > 2 * points_px)


def test_links_on_the_map_have_the_colour_of_their_forecast(console):
    pytest.importorskip("onnxruntime")
    now = datetime.now(UTC)
    records = [
        {
            "measurement": "link",
            "time": (now - timedelta(minutes=minute)).isoformat(),
            "tags": {"entity_id": name, "kind": "placed"},
            "fields": {"snr_db": snr_db, "lat": lat, "lon": 10.0},
        }
        for minute in range(30, 0, -1)
        for name, snr_db, lat in (("site-high", 20.0, 50.0), ("site-low", 2.0, 55.0))
    ]
    assert console.service.post(records, key=console.service.other_key).status == 202
    console.resize(1280)
    console.view("entities", tenant="lighthouse", tag="kind%3Dplaced", layout="outlook")
    until(lambda: console.texts(".total") == ["2 of 2 entities have a place"])
    assert console.texts(".legend li")[0].startswith("chance of less than 6 dB")


def test_the_outlook_sorts_links_and_leads_to_their_forecast(console):
    pytest.importorskip("onnxruntime")
    console.resize(1280)
    console.view("outlook", tenant="harbour", threshold="99")
    names = until(lambda: console.texts(".cards tbody th"))
    assert {f"link-{number}" for number in range(6)} <= set(names)
    assert console.texts(".cards tbody tr:first-child td")[0] == "over 99 %"
    console.view("outlook", tenant="lighthouse")
    assert "sends no capacity_bytes" in until(lambda: console.texts(".cards tbody td"))
    console.find(".cards tbody th a").click()
    until(lambda: console.shown() == "forecasts")


def test_a_backtest_is_of_the_stored_rows_or_of_a_file(console, tmp_path):
    pytest.importorskip("onnxruntime")
    console.resize(1280)
    console.view("backtest", tenant="harbour")
    horizons = ["5 min", "15 min", "30 min", "1 h"]
    assert until(lambda: console.texts(".report tbody th")) == horizons
    bars = [len(console.all(f".bars rect.line-{line}")) for line in (1, 2, 3)]
    assert bars == [2 * len(horizons)] * 3
    coverage = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
    row = {"horizon_minutes": 5, "count": 7, "coverage": coverage}
    scores = [
        {**row, "forecast": who, "mean_pinball": loss}
        for who, loss in (("model", 0.3), ("last_value", 0.4), ("same_time", 0.6))
    ]
    about = {"family": "snr", "model_version": "<b>", "entities": 2, "origins": 9}
    document = {**about, "scores": scores}
    for name, content in (("good.json", json.dumps(document)), ("bad.json", "[")):
        (tmp_path / name).write_text(content)
    chooser = console.find("input[type=file]")
    chooser.send_keys(str(tmp_path / "good.json"))
    until(lambda: console.texts(".report tbody th") == horizons[:1])
    assert console.texts(".figures dd") == ["25 % better", "80 %, 80 % wanted", "2", "<b>"]
    assert console.texts(".report .help")[0].startswith("From good.json, 9 origins")
    chooser.send_keys(str(tmp_path / "bad.json"))
    assert until(lambda: console.texts(".notice strong")) == ["bad.json is not a backtest."]
