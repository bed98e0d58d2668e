"""The limits as a client sees them, on the real limiter."""

import logging
from functools import partial
from types import SimpleNamespace

import pytest
from application import client
from falcon.testing import create_environ

from fleetcast.config import Settings
from fleetcast.config.sections import Adapters, Http, Limits
from fleetcast.engine import NameMapping
from fleetcast.errors import Refused
from fleetcast.http.rules import adapter_rules, public_rules
from fleetcast.metrics import Counters, Totals
from tests.http.stores import Stores

FORWARDED = "x-forwarded-for"
BAD = {"x-api-key": "bad"}


def served(path, *, limits=None, trusted_proxies=(), **options):
    settings = Settings(limits=limits or Limits(), http=Http(trusted_proxies=trusted_proxies))
    return client(settings=settings, limiter=path, **options)


def assert_refused(answer, code, longest_seconds):
    assert (answer.status_code, answer.json) == (429, {"error": code})  # B9
    assert 1 <= int(answer.headers["Retry-After"]) <= longest_seconds  # B8


def test_the_thirty_first_request_waits_whatever_it_asks_for(tmp_path):
    """Stage 1, B1: with a good key, too. B4: 404, OPTIONS and health count; B6: in all workers."""
    workers = [served(tmp_path / "run" / "limiter") for _ in range(2)]
    for number in range(10):
        worker = workers[number % 2]
        assert worker.simulate_get("/nowhere").status_code == 404
        assert worker.simulate_options("/telemetry").status_code == 204
        assert worker.simulate_get("/health").status_code == 200
    assert_refused(workers[0].simulate_get("/health"), "rate_limited", 60)


def test_ten_bad_keys_lock_out_and_a_good_one_does_not_help(tmp_path):
    """B12 to B14; open routes still answer, and the rate limit wins (B15)."""
    app = served(tmp_path / "limiter")
    for _ in range(5):
        assert app.simulate_get("/account/state").status_code == 200
        assert app.simulate_get("/account/state", headers=BAD).status_code == 401
        assert app.simulate_get("/account/state", headers=BAD).status_code == 401
    assert_refused(app.simulate_get("/account/state"), "auth_lockout", 300)
    for _ in range(14):
        assert app.simulate_get("/health").status_code == 200
    assert_refused(app.simulate_get("/account/state"), "rate_limited", 60)


def test_clients_behind_a_trusted_proxy_have_a_minute_each(tmp_path):
    limits = Limits(requests_per_minute=1)
    app = served(tmp_path / "limiter", limits=limits, trusted_proxies=("127.0.0.0/8",))
    for address in ("203.0.113.1", "203.0.113.2"):
        headers = {"x-forwarded-for": address}
        assert app.simulate_get("/health", headers=headers).status_code == 200
        assert app.simulate_get("/health", headers=headers).status_code == 429


def test_n8_an_exempt_network_is_not_counted_and_may_be_locked_out_all_the_same(tmp_path):
    limits = Limits(requests_per_minute=2, lockout_failures=3, exempt=("127.0.0.0/8",))
    app = served(tmp_path / "limiter", limits=limits)
    for _ in range(5):
        assert app.simulate_get("/account/state").status_code == 200
    for _ in range(3):
        assert app.simulate_get("/account/state", headers=BAD).status_code == 401
    assert_refused(app.simulate_get("/account/state"), "auth_lockout", 300)
    assert app.simulate_get("/health").status_code == 200


def test_n8_behind_a_trusted_proxy_the_client_is_exempt_and_not_the_proxy(tmp_path):
    exempt = ("127.0.0.1", "203.0.113.0/28", "2001:db8::/48")
    limits = Limits(requests_per_minute=1, exempt=exempt)
    app = served(tmp_path / "limiter", limits=limits, trusted_proxies=("127.0.0.0/8",))

    def statuses(forwarded):
        answers = [app.simulate_get("/health", headers={FORWARDED: forwarded}) for _ in range(3)]
        return [answer.status_code for answer in answers]

    for collector in ("203.0.113.7", "::ffff:203.0.113.7", "2001:db8::5", "unknown, 203.0.113.7"):
        assert statuses(collector) == [200] * 3, collector
    for other in ("203.0.113.16", "2001:db9::5", "203.0.113.7, 198.51.100.1"):
        assert statuses(other) == [200, 429, 429], other


def test_n8_without_a_trusted_proxy_a_header_exempts_nobody(tmp_path):
    limits = Limits(requests_per_minute=1, exempt=("203.0.113.7",))
    app = served(tmp_path / "limiter", limits=limits)
    headers = {FORWARDED: "203.0.113.7"}
    statuses = [app.simulate_get("/health", headers=headers).status_code for _ in range(2)]
    assert statuses == [200, 429]


def test_limits_of_zero_are_off_and_open_no_file(tmp_path):
    limits = Limits(requests_per_minute=0, lockout_failures=0)
    app = served(tmp_path / "limiter", limits=limits)
    for _ in range(40):
        assert app.simulate_get("/account/state", headers=BAD).status_code == 401
    assert list(tmp_path.iterdir()) == []


def test_a_broken_file_lets_requests_pass_and_says_so(tmp_path, caplog, monkeypatch):
    """B7, and it mends itself once it can."""
    now = [0.0]
    monkeypatch.setattr("fleetcast.http.rules.time", SimpleNamespace(monotonic=lambda: now[0]))
    (tmp_path / "run").write_text("in the way")
    counters, limits = Counters.alone(), Limits(requests_per_minute=1)
    app = served(tmp_path / "run" / "limiter", limits=limits, counters=counters)

    def statuses(count):
        return [app.simulate_get("/health").status_code for _ in range(count)]

    def failed_open():
        return Totals(counters.shared).of("fleetcast_limiter_failed_open_total")

    with caplog.at_level(logging.ERROR, "fleetcast.http.rules"):
        assert statuses(3) == [200] * 3
        now[0] = 10.0
        # Counted as a request and as a failure, and looked for before and after.
        assert app.simulate_get("/account/state", headers=BAD).status_code == 401
    faults = [line for line in caplog.records if line.name == "fleetcast.http.rules"]
    assert (failed_open(), len(faults)) == (7, 2)

    (tmp_path / "run").unlink()
    assert statuses(2) == [200, 429]
    (tmp_path / "run" / "limiter").write_bytes(b"cut short while open")
    assert statuses(1) == [200]
    assert failed_open() == 8


def listeners(folder, adapters_requests_per_minute, lockout_failures):
    """Functions that tell the answer of each listener to a bad key on a path."""
    limits = Limits(requests_per_minute=1, lockout_failures=lockout_failures)
    adapters = Adapters(requests_per_minute=adapters_requests_per_minute)
    settings, counters = Settings(limits=limits, adapters=adapters), Counters.alone()
    mapping, public = NameMapping([], (None, "", None)), folder / "limiter"
    return [
        partial(refusal, Stores().service(rules))
        for rules in (
            public_rules(settings, public, counters),
            adapter_rules(settings, public, folder / "adapters", counters, mapping),
        )
    ]


def refusal(service, path):
    with pytest.raises(Refused) as caught:
        service.decide(create_environ(path, method="POST", headers=BAD)).check()
    return caught.value.args[0]


def test_a_listener_with_a_rate_of_its_own_shares_the_lockout_alone(tmp_path):
    public, adapters = listeners(tmp_path / "run", 2, lockout_failures=2)
    assert public("/telemetry") == adapters("/write") == "auth_failed"
    assert adapters("/write") == "auth_lockout"
    assert public("/telemetry") == adapters("/write") == "rate_limited"


def test_a_listener_without_a_rate_counts_nobody_and_locks_out_all_the_same(tmp_path):
    _, adapters = listeners(tmp_path, 0, lockout_failures=1)
    assert {adapters("/nowhere") for _ in range(100)} == {"not_found"}
    assert list(tmp_path.iterdir()) == []
    assert [adapters("/write") for _ in range(2)] == ["auth_failed", "auth_lockout"]
