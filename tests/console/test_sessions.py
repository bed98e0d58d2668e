"""Tokens, sessions, guesses, and pages of other sites, which may not look."""

from __future__ import annotations

import json
import subprocess

import pytest

from fleetcast.accounts import ControlStore, Operators
from fleetcast.accounts.token_text import read_token_text
from fleetcast.console.answers import ConsoleRefused
from fleetcast.console.guesses import FAILURES_MAX, Guesses
from fleetcast.console.sessions import SESSION_SECONDS, Sessions
from fleetcast.engine import time_ns
from tests.clock import Clock
from tests.service.service import FLEETCAST, command
from tests.waiting import until

from .conftest import Operator
from .fleet import operator_token

MASTER_KEY = bytes(range(32))
VIEWS = [
    *("session", "tenants", "storage", "processes", "refusals", "nothing"),
    *(f"tenants/acme/{view}" for view in ("entities", "channels", "forecasts", "upcoming")),
]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def operators(tmp_path, clock):
    store = ControlStore.create(tmp_path / "control", MASTER_KEY)
    yield Operators(store, MASTER_KEY, clock)
    store.close()


@pytest.fixture
def sessions(operators, tmp_path, clock):
    return Sessions(operators, MASTER_KEY, Guesses(tmp_path / "run" / "console"), clock)


def signed_in(sessions, text):
    _, cookie = sessions.open(f"Bearer {text}", "127.0.0.1")
    return cookie.partition(";")[0]


@pytest.mark.parametrize("path", VIEWS)
def test_nothing_is_shown_without_a_session(stranger, path):
    answer = stranger.ask(f"api/{path}")
    assert (answer.status, answer.json["error"]) == (401, "signed_out")


def test_a_tenants_key_opens_nothing(stranger):
    answer = stranger.give(stranger.service.key)
    assert (answer.status, answer.json["error"]) == (401, "auth_failed")
    assert answer.headers["Set-Cookie"] is None
    assert stranger.ask("api/tenants", X_API_Key=stranger.service.key).status == 401


def test_a_token_opens_nothing_of_the_public_listener(stranger):  # J11
    token = operator_token(stranger.data)
    assert stranger.service.get("/topology", key=token).json == {"error": "auth_failed"}
    assert stranger.service.get("/console/", key=None).status == 404


def test_a_session_is_a_cookie_that_no_script_and_no_other_site_gets(stranger):
    answer = stranger.give(operator_token(stranger.data, "Ada"))
    assert answer.json["name"] == "Ada"
    cookie = answer.headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/console/", "Max-Age=43200"} < set(cookie)
    stranger.cookie = cookie[0]
    assert stranger.read("session") == answer.json
    ended = stranger.ask("api/session", "DELETE").headers["Set-Cookie"]
    assert ended.startswith("fleetcast_console=;")
    assert "Max-Age=0" in ended


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_or_port_asks_in_vain(operator, site):
    answer = operator.ask("api/tenants", Sec_Fetch_Site=site)
    assert (answer.status, answer.json["error"]) == (403, "cross_site")
    assert operator.ask("api/tenants", Sec_Fetch_Site="same-origin").status == 200


def test_a_revoked_token_ends_its_sessions_at_once(place):
    token = operator_token(place[1])
    operator = Operator(*place).sign_in(token)
    token_id = read_token_text(token).token_id
    command(place[1], "operator", "revoke", token_id)
    until(lambda: operator.ask("api/tenants").status == 401)
    assert operator.give(token).status == 401


def test_commands_issue_list_and_end_tokens(place):
    issued = command(place[1], "operator", "token", "--name", "night shift", "--expires", "8h")
    listed = {row["token_id"]: row for row in command(place[1], "operator", "list")["tokens"]}
    row = listed[issued["token_id"]]
    assert (row["name"], row["status"]) == ("night shift", "active")
    lifetime_ns = time_ns(row["expires_at"]) - time_ns(row["created_at"])
    assert lifetime_ns == 8 * 3600 * 10**9
    assert "token" not in row
    command(place[1], "operator", "revoke", issued["token_id"])
    listed = {row["token_id"]: row for row in command(place[1], "operator", "list")["tokens"]}
    assert listed[issued["token_id"]]["status"] == "revoked"


def test_the_command_names_the_console_that_runs(place):
    service, data = place
    issue = [*FLEETCAST, "operator", "token", "--data", str(data)]
    shown = subprocess.run(issue, capture_output=True, check=True, text=True).stdout
    assert f"{service.ready['admin']}/console/" in shown


def test_the_secret_of_a_token_is_nowhere_on_disk_and_in_no_log(place):
    token = operator_token(place[1], "Ada")
    operator = Operator(*place).sign_in(token)
    operator.read("tenants")
    assert operator.give(token[:-1] + "x").status == 401
    secret = read_token_text(token).secret.encode()
    mac = operator.cookie.encode().rpartition(b".")[2]
    texts = {path: path.read_bytes() for path in place[1].rglob("*") if path.is_file()}
    assert [path for path, text in texts.items() if secret in text or mac in text] == []
    lines = [json.loads(line) for line in texts[place[1] / "serve.log"].splitlines()]
    events = [line["event"] for line in lines if line.get("audit")]
    assert "console opened" in events
    assert "console sign-in refused" in events


def test_guesses_are_counted_by_address_before_any_token_is_looked_at(operators, sessions):
    good = operators.create().text
    cookie = signed_in(sessions, good)
    for number in range(FAILURES_MAX):
        with pytest.raises(ConsoleRefused) as refusal:
            sessions.open(f"Bearer fto_{number}", "127.0.0.1")
        assert refusal.value.answer.status == 401
    with pytest.raises(ConsoleRefused) as refusal:
        sessions.open(f"Bearer {good}", "127.0.0.1")
    assert refusal.value.answer.status == 429
    assert int(dict(refusal.value.answer.fields)["Retry-After"]) > 0
    # Sessions that are open stay so, and so do other addresses.
    assert sessions.find(cookie) is not None
    assert sessions.open(f"Bearer {good}", "10.0.0.7")


def test_where_guesses_cannot_be_counted_nobody_comes_in(operators, tmp_path, clock):
    (tmp_path / "console").mkdir()
    sessions = Sessions(operators, MASTER_KEY, Guesses(tmp_path / "console"), clock)
    with pytest.raises(ConsoleRefused) as refusal:
        sessions.open(f"Bearer {operators.create().text}", "127.0.0.1")
    assert refusal.value.answer.status == 503


def test_a_session_ends_after_twelve_hours(operators, sessions, clock):
    cookie = signed_in(sessions, operators.create().text)
    clock.now += SESSION_SECONDS - 1
    assert sessions.find(cookie) is not None
    clock.now += 1
    assert sessions.find(cookie) is None


def test_a_session_ends_with_its_token(operators, sessions, clock):
    cookie = signed_in(sessions, operators.create(lifetime_seconds=60).text)
    clock.now += 59
    assert sessions.find(cookie) is not None
    clock.now += 1
    assert sessions.find(cookie) is None


def test_a_cookie_that_was_changed_is_none(operators, sessions):
    ours = signed_in(sessions, operators.create().text)
    other = signed_in(sessions, operators.create().text)
    name, _, value = ours.partition("=")
    token_id, end, mac = value.split(".")
    other_id = other.partition("=")[2].split(".")[0]
    assert sessions.find(ours).token.token_id == token_id
    longer = str(int(end) + 1)
    forged = [(other_id, end, mac), (token_id, longer, mac), (token_id, end, mac[::-1])]
    for parts in forged:
        assert sessions.find(f"{name}={'.'.join(parts)}") is None
    for text in ("", "x", f"{name}=", f"{name}={value}x", f"{name}={value};{name}=x", "\x00=;"):
        assert sessions.find(text) is None


def test_another_master_key_makes_other_cookies(operators, sessions, tmp_path, clock):
    cookie = signed_in(sessions, operators.create().text)
    other = Sessions(operators, bytes(32), Guesses(tmp_path / "run" / "console"), clock)
    assert other.find(cookie) is None
