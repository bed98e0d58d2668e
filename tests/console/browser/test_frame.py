"""Signing in and out, and what the page says when the service does not answer."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta

import pytest

from tests.console.fleet import fleet
from tests.service.service import command
from tests.waiting import until

from .driver import AXE, Console, browser, missing
from .test_ask import module
from .test_views import VIEWS

ROWS = "tbody tr[aria-rowindex]"
LIVE_SECONDS = 10  # of a window that moves


@pytest.fixture
def own(tmp_path):
    """A console of a service that a test may break."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    with fleet(tmp_path / "data", terminal_count=50) as service, browser() as driver:
        service.data = tmp_path / "data"
        console = Console(driver, service)
        console.resize(1280)
        yield console


def requests(console):
    """Paths that the page has asked for since it was last asked for them."""
    script = (
        "const found = performance.getEntriesByType('resource').map((of) => of.name);"
        "performance.clearResourceTimings(); return found;"
    )
    return [name for name in console.script(script) if "/api/" in name]


def hide(console, *, hidden):
    """As a browser tells a page that another one is in front of it."""
    console.script(
        "Object.defineProperty(document, 'hidden', {value: arguments[0], configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))",
        hidden,
    )


def test_a_token_is_taken_once_and_a_session_ends(own):
    own.driver.get(own.base)
    assert not AXE.exists() or own.violations() == []
    own.find(".sign-in input").send_keys("fto_wrong\n")
    assert "fleetcast operator token" in until(lambda: own.texts(".said")[0])
    own.sign_in()
    own.view("tenants")
    assert own.driver.execute_script("return document.cookie") == ""
    kept = "return JSON.stringify([localStorage, sessionStorage])"
    assert own.driver.execute_script(kept) == "[{},{}]"
    own.driver.refresh()
    own.wait("nav a")
    own.find("#bar button").click()
    until(lambda: own.all(".sign-in"))
    own.driver.refresh()
    own.wait(".sign-in")


def test_a_revoked_token_shows_the_form_again(own):
    own.sign_in()
    own.view("tenants")
    for token in command(own.service.data, "operator", "list")["tokens"]:
        command(own.service.data, "operator", "revoke", token["token_id"])
    own.wait(".sign-in")
    assert own.all(ROWS) == []


def test_only_what_is_looked_at_is_asked_for(own):
    own.sign_in()
    own.view("processes")
    requests(own)
    until(lambda: sum("api/processes" in name for name in requests(own)))
    own.view("tenants")
    until(lambda: any("api/tenants" in name for name in requests(own)))
    # From here on the view that was left is asked for no more.
    seen = []
    until(lambda: seen.extend(requests(own)) or len(seen) >= 2)
    assert {name.rpartition("/")[2].partition("?")[0] for name in seen} == {"tenants"}


def test_a_hidden_page_asks_for_nothing_and_asks_when_it_is_looked_at(own):
    own.sign_in()
    own.view("processes")
    hide(own, hidden=True)
    own.driver.execute_async_script("setTimeout(arguments[0], 300)")  # what was under way
    requests(own)
    own.driver.execute_async_script("setTimeout(arguments[0], 6000)")  # its turn would have come
    assert requests(own) == []
    hide(own, hidden=False)
    until(lambda: any("api/processes" in name for name in requests(own)))


def test_it_says_that_what_it_shows_is_old_and_recovers(own):
    own.sign_in()
    own.view("tenants")
    rows = own.texts(ROWS)
    stopped = own.service.workers("admin")[0]
    os.kill(own.service.arbiter("admin"), signal.SIGSTOP)
    try:
        os.kill(stopped, signal.SIGKILL)
        until(lambda: "The service does not answer" in own.texts(".status")[0])
        assert own.texts(".status")[0].startswith("Old: as of ")
        assert own.texts(ROWS) == rows
        assert own.state() == "failed"
    finally:
        os.kill(own.service.arbiter("admin"), signal.SIGCONT)
    until(lambda: own.state() == "fresh")


def test_a_store_that_cannot_be_read_is_named(own):
    account = command(own.service.data, "tenant", "create", "broken")["account_id"]
    (own.service.data / "planes" / account / "plane.mdb").write_bytes(b"x" * 4096)
    own.sign_in()
    own.view("entities", tenant="broken")
    assert "The store of broken cannot be opened" in own.texts(".notice.error p")[0]
    own.view("entities", tenant="harbour")
    assert own.state() == "fresh"
    own.view("tenants", search="broken")
    until(lambda: own.texts(".tag.bad") == ["unreadable", "unreadable"])


def test_where_nothing_is_each_view_says_what_to_do(own):
    own.sign_in()
    own.view("tenants", search="nobody")
    assert until(lambda: own.texts(".notice strong")) == ["No tenant has this in its name."]
    for view in ("entities", "channels", "forecasts"):
        own.view(view, tenant="quay-7", measurement="", entity="")
        assert until(lambda: own.texts(".notice strong")), view
        assert not AXE.exists() or own.violations() == []


@pytest.mark.parametrize(("view", "parameters"), VIEWS)
def test_an_open_page_asks_at_most_once_a_second(console, view, parameters):
    console.view("processes")
    requests(console)
    console.view(view, **parameters)
    name = {"ask": "questions"}.get(view, view)
    every = module(console, f"views/{view}.js", f"of.{name}.seconds") or LIVE_SECONDS
    # The first turn has all requests of a later turn, and some more.
    assert len(requests(console)) <= every


def test_a_silent_entity_leads_to_its_last_hours(own):
    old = {
        "measurement": "telemetry",
        "time": (datetime.now(UTC) - timedelta(days=3)).isoformat(),
        "tags": {"entity_id": "gone"},
        "fields": {"level": 7.5},
    }
    assert own.service.post([old]).status == 202
    own.sign_in()
    own.view("entities", tenant="harbour", search="gone")
    own.wait(ROWS)[0].click()
    own.wait(".detail button")[0].click()
    until(lambda: own.texts(".chart strong") == ["level"])
    assert own.texts(".legend .value") == ["7.5"]
