"""Ask in a browser: a query with suggestions, its answer as a chart and a table, and refusals."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from tests.console.fleet import load
from tests.service.service import command
from tests.waiting import until

from .driver import AXE
from .test_charts import address, drag, drawn

DOWN, UP, ESCAPE, ENTER, END = "\ue015", "\ue013", "\ue00c", "\ue007", "\ue010"
BOX = "[role=combobox]"
OPTIONS = "[role=option] span"
ROWS = "tbody tr[aria-rowindex]"
LINKS = [f"link-{number}" for number in range(6)]
NEWEST = 'last_over_time(snr_db{measurement="link"}[1d])'


@pytest.fixture(autouse=True)
def wide(console):
    console.resize(1280)


@pytest.fixture
def aged(console):
    """A tenant with samples of a day, and hours of the three days before."""
    data, now = console.service.data, datetime.now(UTC)
    command(data, "tenant", "create", "aged")
    command(data, "tenant", "set", "aged", "--retention", "1d", "--keep-hours", "1y")
    record = {"measurement": "link", "tags": {"entity_id": "a"}, "fields": {"snr_db": 7.5}}
    times = (now - timedelta(hours=hours) for hours in range(96))
    load(data, "aged", ({**record, "time": time.isoformat()} for time in times))
    command(data, "compact")
    yield "aged"
    command(data, "tenant", "delete", "aged", "--yes")


def opened(console, query="", **parameters):
    console.view("ask", tenant="harbour", query=quote(query), **parameters)
    return console.find(BOX)


def shown(console):
    return console.texts(OPTIONS)


def module(console, name, call):
    """Result of an expression over a module of the page."""
    script = (
        "const done = arguments[1];"
        "const base = document.querySelector('script[type=module]').src;"
        f"import(new URL(arguments[0], base)).then((of) => done({call}))"
    )
    return console.driver.execute_async_script(script, name)


def test_a_query_is_made_of_suggestions_with_the_keyboard_alone(console):
    box = opened(console, seconds="86400")
    box.send_keys("snr")
    assert until(lambda: shown(console))[0] == "snr_db"
    assert box.get_attribute("aria-expanded") == "true"
    box.send_keys(DOWN)
    chosen = console.find("[role=option][aria-selected=true]")
    assert box.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    box.send_keys(ENTER)
    assert box.get_attribute("value") == "snr_db"
    box.send_keys("{mea")
    until(lambda: shown(console) == ["measurement"])
    box.send_keys(DOWN, ENTER)
    until(lambda: shown(console) == ["link", "telemetry"])
    box.send_keys(UP, UP, ENTER)
    assert box.get_attribute("value") == 'snr_db{measurement="link"'
    box.send_keys("}")
    until(lambda: box.get_attribute("aria-expanded") == "false")
    box.send_keys(ENTER)
    until(lambda: address(console)["query"] == 'snr_db{measurement="link"}')


def test_escape_closes_the_suggestions_and_an_arrow_opens_them(console):
    box = opened(console)
    box.send_keys(DOWN)
    until(lambda: shown(console) and box.get_attribute("aria-expanded") == "true")
    box.send_keys(ESCAPE)
    assert box.get_attribute("aria-expanded") == "false"
    box.send_keys("topk(3, ra")
    until(lambda: shown(console)[:1] == ["rate"])
    console.find("[role=option]").click()
    assert box.get_attribute("value") == "topk(3, rate("
    assert console.script("return document.activeElement.role") == "combobox"


def test_an_answer_is_a_chart_and_a_table_that_is_sorted_and_saved(console, tmp_path):
    opened(console, NEWEST, seconds="3600")
    ids = f"{ROWS} td:first-child"
    until(lambda: console.texts(ids) == LINKS)
    assert console.texts("thead th") == ["entity_id", "Value"]
    assert 'measurement="link"' in console.texts(".answers .help")[0]
    assert console.texts(".legend .label") == [f'{{entity_id="{name}"}}' for name in LINKS]
    assert drawn(console, 0, 1)
    console.find("th[data-sort=value] button").click()
    until(lambda: console.find("th[data-sort=value]").get_attribute("aria-sort") == "descending")
    values = [float(text) for text in console.texts(f"{ROWS} td:last-child")]
    assert values == sorted(values, reverse=True)
    console.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    console.find(".filters .actions button").click()
    path = tmp_path / "harbour-query.csv"
    until(lambda: path.exists() and path.stat().st_size)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["entity_id"] for row in rows] == LINKS
    assert {row["measurement"] for row in rows} == {"link"}


def test_a_drag_zooms_the_window_of_the_query(console):
    opened(console, NEWEST, seconds="3600")
    drawn(console)
    drag(console, 0, 0.25, 0.75)
    zoomed = until(lambda: (now := address(console)).get("from") and now)
    begin, end = (datetime.fromisoformat(zoomed[name]) for name in ("from", "to"))
    assert 1_700 < (end - begin).total_seconds() < 1_900
    until(lambda: f" {end:%H:%M:%S} UTC." in console.texts(".answers .help")[0])
    console.find(".window button").click()
    until(lambda: "from" not in address(console))


def test_numbers_texts_and_ranges_have_an_answer(console):
    opened(console, "1 + 1")
    until(lambda: console.texts(f"{ROWS} td:last-child") == ["2"])
    assert console.texts(".legend .label") == ["value"]
    opened(console, '"words"')
    until(lambda: console.texts(f"{ROWS} td:last-child") == ["words"])
    assert console.all(".chart") == []
    opened(console, 'beacon_none or level{entity_id="beacon-2"}[6h]')
    assert until(lambda: console.texts(".said")[0])
    opened(console, 'level{entity_id="beacon-2"}[1d]', seconds="86400")
    until(lambda: len(console.texts(ROWS)) == 1)
    assert drawn(console)


def test_a_refusal_is_said_at_the_field_until_the_query_is_mended(console):
    box = opened(console, "sum(")
    assert "parenthesis" in until(lambda: console.texts(".said")[0])
    assert box.get_attribute("aria-invalid") == "true"
    assert box.get_attribute("aria-describedby") == console.find(".said").get_attribute("id")
    assert console.state() == "fresh"
    assert not AXE.exists() or console.violations() == []
    box.send_keys("1)", ESCAPE, ENTER)
    until(lambda: "parenthesis" not in (said := console.texts(".said")[0]) and said)
    box.clear()
    box.send_keys("2 * 21", ENTER)
    until(lambda: console.texts(f"{ROWS} td:last-child") == ["42"])
    assert console.texts(".said") == [""]
    assert box.get_attribute("aria-invalid") == "false"


def test_a_window_before_the_retention_says_when_samples_begin(console, aged):
    now = datetime.now(UTC)
    ago = {"from": now - timedelta(hours=80), "to": now - timedelta(hours=60)}
    window = {name: f"{time:%Y-%m-%dT%H:%M:%S}" for name, time in ago.items()}
    console.view("ask", tenant=aged, query="snr_db", **window)
    begin = f"samples are kept from {now - timedelta(days=1):%Y-%m-%d}T"
    assert until(lambda: console.texts(".warned")[0]).startswith(begin)
    assert not AXE.exists() or console.violations() == []
    query = quote("last_over_time(snr_db[2h])")
    console.view("ask", tenant=aged, query=query, seconds="3600")
    until(lambda: console.texts(f"{ROWS} td:last-child") == ["7.5"])
    assert console.texts(".warned") == [""]


def test_the_examples_are_a_click_away(console):
    opened(console)
    examples = console.texts(".examples code")
    assert len(examples) == 4
    for at, query in enumerate(examples):
        opened(console)
        console.wait(".examples button")[at].click()
        until(lambda query=query: address(console).get("query") == query)
        until(lambda: not console.all(".examples"))
        assert console.texts(".said") == [""]


def test_many_series_are_lines_for_some_and_rows_for_all(console):
    opened(console, "topk(20, last_over_time(downlink_mbps[1d]))", seconds="900")
    assert re.match(r"the first 16 of \d+ series", until(lambda: console.texts(".unit"))[0])
    assert len(console.texts(".legend .label")) == 16
    opened(console, "last_over_time(downlink_mbps[1d])", seconds="900")
    until(lambda: console.texts(".answers .help")[0].startswith("10,000 series"))
    assert "topk" in console.texts(".answers .help")[0]
    assert console.all(".chart") == []
    assert len(console.all(ROWS)) < 60


def test_the_suggestions_fit_a_narrow_window_and_break_no_rule_of_axe(console):
    console.resize(400)
    box = opened(console)
    box.send_keys(DOWN)
    until(lambda: shown(console))
    box.send_keys(DOWN)
    assert console.script("return document.documentElement.scrollWidth") <= 400
    assert not AXE.exists() or console.violations() == []
    box.send_keys(ESCAPE)


def test_what_a_tenant_named_is_text_in_suggestions_and_answers(console):
    name = '<img src=x onerror=alert(1)>"\\'
    tags = {"entity_id": name, "constructor": "<b>1</b>", "__proto__": "x"}
    record = {"measurement": "weather", "time": "2026-01-01", "tags": tags, "fields": {"hail": 1.5}}
    plain = {**record, "tags": {"entity_id": "plain"}}
    assert console.service.post([record, plain]).status == 202
    window = {"from": "2026-01-01T00:00:00", "to": "2026-01-01T00:04:00"}
    box = opened(console, "hail", **window)
    until(lambda: name in console.texts(f"{ROWS} td"))
    assert "<b>1</b>" in console.texts(f"{ROWS} td")
    box.clear()
    box.send_keys('hail{entity_id="<')
    until(lambda: shown(console) == [name])
    box.send_keys(DOWN, ENTER)
    assert box.get_attribute("value") == r'hail{entity_id="<img src=x onerror=alert(1)>\"\\"'
    box.send_keys("}", ENTER)
    until(lambda: len(console.texts(ROWS)) == 1)
    assert console.all("main img, main b, main script") == []


def test_the_place_of_the_cursor_says_which_names_can_stand_there(console):
    opened(console)
    places = {
        "ra": ["word", "ra", None],
        "rate(up{": ["label", "", "up"],
        'up{job="no': ["value", "no", "up"],
        "up{job=~'a|": ["value", "a|", "up"],
        'up{job="a", in': ["label", "in", "up"],
        'up{job="a"': None,
        "up{job=": None,
        "sum by (re": ["label", "re", None],
        "up[5": None,
        "up offset 5m": None,
        '"te': None,
        'up{job="\\"}': ["value", '\\"}', "up"],
        'up{job="}"} + x': ["word", "x", None],
    }
    for query, expected in places.items():
        call = f"of.placeOf({query!r}, {len(query)})"
        place = module(console, "language.js", call)
        found = place and [place["kind"], place["text"], place.get("metric")]
        assert found == expected, query


def test_a_completion_keeps_what_stands_after_the_cursor(console):
    opened(console)
    chosen = [
        ("sum(sn)", 6, "snr_db", "metric"),
        ("ra", 2, "rate", "function"),
        ("up{j}", 4, "job", "label"),
        ('up{jo="x"}', 4, "job", "label"),
        ('up{a="b"}', 7, "bcd", "value"),
    ]
    call = (
        f"{json.dumps(chosen)}.map(([query, cursor, name, kind]) =>"
        " of.completed(query, cursor, of.placeOf(query, cursor), {name, kind}))"
    )
    found = [(of["query"], of["cursor"]) for of in module(console, "language.js", call)]
    assert found == [
        ("sum(snr_db)", 10),
        ("rate(", 5),
        ('up{job="}', 8),
        ('up{job="x"}', 6),
        ('up{a="bcd"}', 10),
    ]
