"""Tokens, sessions, guesses, and pages of other sites, which may not look."""

from __future__ import annotations

import json
import subprocess

import pytest

from fleetcast.accounts import ConsoleSessions, ControlStore, Operators
from fleetcast.accounts.console_sessions import LIFETIME_SECONDS, SESSIONS_PER_TOKEN_MAX
from fleetcast.accounts.store import SESSION_PEPPER
from fleetcast.console.answers import ConsoleRefused
from fleetcast.console.guesses import FAILURES_MAX, Guesses
from fleetcast.console.sessions import Sessions
from fleetcast.engine import ConsoleSession, time_ns
from tests.clock import Clock
from tests.key_text import id_of, secret_of
from tests.service.service import FLEETCAST, command
from tests.waiting import until

from .conftest import Operator
from .fleet import operator_token

MASTER_KEY = bytes(range(32))
SESSION_IDLE_SECONDS = 30 * 60
VIEWS = [
    *("session", "tenants", "storage", "processes", "refusals", "nothing"),
    *(f"tenants/acme/{view}" for view in ("entities", "channels", "forecasts", "upcoming")),
]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path):
    made = ControlStore.create(tmp_path / "control", MASTER_KEY)
    yield made
    made.close()


@pytest.fixture
def operators(store, clock):
    return Operators(store, clock)


@pytest.fixture
def kept(store, clock):
    return ConsoleSessions(store, clock)


@pytest.fixture
def sessions(operators, kept, tmp_path):
    return Sessions(operators, kept, Guesses(tmp_path / "run" / "console"))


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
    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} < set(cookie)
    assert cookie[0].startswith("__Host-fleetcast_console=")
    stranger.cookie = cookie[0]
    assert stranger.read("session") == answer.json
    ended = stranger.ask("api/session", "DELETE").headers["Set-Cookie"]
    assert ended.startswith("__Host-fleetcast_console=;")
    assert "Max-Age=0" in ended


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_or_port_asks_in_vain(operator, site):
    answer = operator.ask("api/tenants", Sec_Fetch_Site=site)
    assert (answer.status, answer.json["error"]) == (403, "cross_site")
    assert operator.ask("api/tenants", Sec_Fetch_Site="same-origin").status == 200


def test_a_revoked_token_ends_its_sessions_at_once(place):
    token = operator_token(place[1])
    operator = Operator(*place).sign_in(token)
    token_id = id_of(token)
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
    secret = secret_of(token).encode()
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


def test_where_guesses_cannot_be_counted_nobody_comes_in(operators, kept, tmp_path):
    (tmp_path / "console").mkdir()
    sessions = Sessions(operators, kept, Guesses(tmp_path / "console"))
    with pytest.raises(ConsoleRefused) as refusal:
        sessions.open(f"Bearer {operators.create().text}", "127.0.0.1")
    assert refusal.value.answer.status == 503


def test_a_session_that_is_in_use_ends_after_twelve_hours(operators, sessions, clock):
    cookie = signed_in(sessions, operators.create().text)
    for _ in range(LIFETIME_SECONDS // SESSION_IDLE_SECONDS):
        clock.now += SESSION_IDLE_SECONDS - 1
        assert sessions.find(cookie) is not None
    clock.now += LIFETIME_SECONDS // SESSION_IDLE_SECONDS
    assert sessions.find(cookie) is None


def test_a_session_that_nobody_uses_ends_after_half_an_hour(operators, sessions, kept, clock):
    cookie = signed_in(sessions, operators.create().text)
    clock.now += SESSION_IDLE_SECONDS - 1
    assert len(kept.all()) == 1
    clock.now += 1
    assert sessions.find(cookie) is None
    assert kept.all() == []


def test_o5_a_session_of_a_clock_that_was_ahead_ends_when_the_clock_is_set(
    operators, sessions, clock
):
    """Nobody was idle for half an hour until the wrong time had come, and half an hour more."""
    token = operators.create().text
    clock.now += 60
    beside = signed_in(sessions, token)
    clock.now += 1
    ahead = signed_in(sessions, token)
    clock.now -= 61
    assert sessions.find(beside) is not None  # time services set a clock back by so much
    assert sessions.find(ahead) is None


def test_a_token_has_so_many_sessions_and_the_oldest_makes_room(
    operators, sessions, store, kept, clock
):
    token, other = operators.create().text, operators.create().text
    beside, first = signed_in(sessions, other), signed_in(sessions, token)
    cookies = []
    for _ in range(SESSIONS_PER_TOKEN_MAX):
        clock.now += 1
        cookies.append(signed_in(sessions, token))
    assert sessions.find(first) is None
    assert all(map(sessions.find, [beside, *cookies]))
    clock.now += SESSION_IDLE_SECONDS
    signed_in(sessions, token)
    with store.read() as view:
        assert list(ConsoleSession.all(view)) == [each.record.session_id for each in kept.all()]


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
    session_id, secret = value.split(".")
    other_id = other.partition("=")[2].split(".")[0]
    assert sessions.find(ours).record.session_id == session_id
    for parts in [(other_id, secret), (session_id, secret[::-1]), (session_id, "a" * 32)]:
        assert sessions.find(f"{name}={'.'.join(parts)}") is None
    for text in ("", "x", f"{name}=", f"{name}={value}x", f"{name}={value};{name}=x", "\x00=;"):
        assert sessions.find(text) is None


def test_another_secret_of_the_hashes_knows_no_cookie(operators, sessions, store, tmp_path, clock):
    cookie = signed_in(sessions, operators.create().text)
    store.keep_secret(SESSION_PEPPER, bytes(32))
    kept = ConsoleSessions(store, clock)
    assert Sessions(operators, kept, Guesses(tmp_path / "run" / "console")).find(cookie) is None


def test_commands_list_and_end_sessions(place):
    token = operator_token(place[1], "night shift")
    first, second = Operator(*place).sign_in(token), Operator(*place).sign_in(token)
    ids = [each.cookie.partition("=")[2].split(".")[0] for each in (first, second)]
    listed = {
        row["session_id"]: row for row in command(place[1], "operator", "sessions")["sessions"]
    }
    assert [listed[each]["name"] for each in ids] == ["night shift"] * 2
    assert listed[ids[0]]["client"] == "127.0.0.1"
    assert all(second.cookie.rpartition(".")[2] not in str(row) for row in listed.values())
    ended = command(place[1], "operator", "sessions", "--end", ids[0])
    assert ended["session_id"] == ids[0]
    assert (first.ask("api/tenants").status, second.ask("api/tenants").status) == (401, 200)
    left = {row["session_id"] for row in command(place[1], "operator", "sessions")["sessions"]}
    assert ids[0] not in left
    again = [*FLEETCAST, "operator", "sessions", "--end", ids[0], "--data", str(place[1])]
    refused = subprocess.run(again, capture_output=True, check=False, text=True)
    assert (refused.returncode, refused.stderr) == (
        1,
        f"fleetcast: there is no console session {ids[0]}\n",
    )


def test_a_signed_out_cookie_is_good_no_more_and_each_sign_in_has_its_own(place):
    token = operator_token(place[1], "Ada")
    first, second = Operator(*place).sign_in(token), Operator(*place).sign_in(token)
    assert first.cookie != second.cookie
    copy = Operator(*place)
    copy.cookie = first.cookie
    assert first.ask("api/session", "DELETE").status == 200
    assert copy.ask("api/tenants").json["error"] == "signed_out"
    assert second.ask("api/tenants").status == 200


def test_a_sign_in_ends_the_session_that_the_browser_had(place):
    token = operator_token(place[1], "Ada")
    browser, copy, other = (Operator(*place).sign_in(token) for _ in range(3))
    copy.cookie = browser.cookie
    assert browser.give("fto_wrong").status == 401
    assert copy.ask("api/tenants").status == 200
    browser.sign_in(token)
    assert copy.ask("api/tenants").json["error"] == "signed_out"
    assert browser.ask("api/tenants").status == other.ask("api/tenants").status == 200
