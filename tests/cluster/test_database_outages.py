"""The database goes away and comes back: what is answered meanwhile, and that nobody restarts."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.conformance.api import Tenant, at, record, refusal
from tests.service.service import FLEETCAST, ask, create_tenant
from tests.waiting import PATIENCE_SECONDS, until

from .nodes import engine, make_nodes, servers, serving

UNAVAILABLE = {
    "error": "telemetry_unavailable",
    "upstream": "postgresql",
    "retry_after_seconds": 5,
}
WORKERS = 2
WRITERS = 6  # fewer than threads of one worker, which may get them all
CLIENTS = 48  # more than threads of both
# A request that tries a database that hangs takes 1.5 seconds at least. If each did, eight threads
# would take three minutes for so many; a request that waits for no database takes milliseconds.
REQUESTS = 1_000
SERIES = f"/topology/series?entity_id=e&start={at(0)}&end={at(3600)}&measurement=link"


@pytest.fixture
def tenant(database, tmp_path):
    """A tenant of a node of its own, whose workers have it open."""
    del database
    nodes = make_nodes(tmp_path, 1)
    with serving(nodes, "--workers", str(WORKERS)) as (service,):
        served = Tenant(service, "acme", None, create_tenant(nodes[0]))
        served.write(*(record(at(number), n=number) for number in range(10)))
        for one in service.each_worker():
            assert one.request("GET", SERIES, key=served.key).status == 200
        yield served


@pytest.fixture
def no_database(tenant):
    """Every server is killed, until the end of the test at the latest."""
    del tenant
    gone = servers()
    for number in gone:
        engine("kill", number)

    def back():
        while gone:
            engine("resume", gone.pop(0))

    yield back
    back()


def test_without_its_database_a_node_says_so_and_serves_again_when_it_is_back(tenant, no_database):
    def requests():
        yield lambda: tenant.post([record(at(100))])
        yield lambda: tenant.get("/topology")
        yield lambda: tenant.service.request("GET", SERIES, key=tenant.key)

    for _ in range(4):  # some on each worker
        for request in requests():
            answer = request()
            assert refusal(answer) == (503, UNAVAILABLE)
            assert answer.headers["Retry-After"] == "5"
    asked = {"model_family": "snr", "link_ids": "link-1"}
    for _ in range(4):
        status, forecasts = refusal(tenant.get("/predictions", **asked))
        assert (status, forecasts["error"]) == (503, "prediction_store_unavailable")
    health = tenant.service.request("GET", "/health/telemetry", key=None)
    assert health.status == 503
    assert health.json["checks"]["timeseries_store"]["ok"] is False
    assert ask(tenant.service, "/readyz").status == 503
    assert ask(tenant.service, "/livez").status == 200
    assert tenant.service.request("GET", "/topology", key=None).status == 401
    before = tenant.service.processes()
    no_database()
    until(lambda: tenant.post([record(at(100), n=100)]).status == 202)
    until(lambda: ask(tenant.service, "/readyz").status == 200)
    numbers = [fields["n"] for _, fields in tenant.rows(fields="n")]
    assert numbers == [*range(10), 100]
    assert tenant.service.processes() == before


@pytest.fixture
def primary(tenant):
    """The primary, which may hang with all its connections until the end of the test."""
    del tenant
    number = engine("primary")
    yield number
    engine("thaw", number)


def test_behind_a_database_that_hangs_nobody_waits_but_who_was_on_the_way(tenant, primary):
    def post(number):
        return refusal(tenant.post([record(at(100), n=number)]))

    def ask_anything(number):
        return post(number) if number % 2 else refusal(tenant.get("/topology"))

    engine("freeze", primary)
    # Sent before anybody knows: their outcome is asked for until it is known, or nearly so.
    with ThreadPoolExecutor(WRITERS) as pool:
        on_the_way = pool.map(post, range(WRITERS))
        # One of a process tries the database; others do not wait for its answer, or for a thread.
        began = time.monotonic()
        with ThreadPoolExecutor(CLIENTS) as clients:
            answers = list(clients.map(ask_anything, range(REQUESTS)))
        assert time.monotonic() - began < PATIENCE_SECONDS
        assert [*answers, *on_the_way] == [(503, UNAVAILABLE)] * (REQUESTS + WRITERS)
    assert ask(tenant.service, "/readyz").status == 503


def test_o9_a_write_that_a_database_that_hangs_may_have_taken_is_unknown(tenant, primary):
    def outcome(version):
        with closing(tenant.service.connect(version)) as wire:
            answer = tenant.post([record(at(100), n=100)], connection=wire)
        assert refusal(answer) == (503, UNAVAILABLE)
        return answer.headers["X-Write-Outcome"]

    def outcomes_under_way():
        """By the front and by the application, on any worker: each has a session."""
        engine("thaw", primary)
        for one in tenant.at_each_worker():
            until(lambda one=one: one.post([record(at(20), n=20)]).status == 202)
        engine("freeze", primary)
        with ThreadPoolExecutor(2 * WORKERS) as pool:
            return list(pool.map(outcome, [11, 10] * WORKERS))

    # A machine that is slow here may learn that the database hangs before it is written to.
    until(lambda: "unknown" in outcomes_under_way())
    # Now it is known that the database hangs, so nothing is sent to it.
    assert [outcome(11), outcome(10)] == ["none", "none"]


def test_a_node_serves_on_when_a_standby_has_become_the_primary(tenant):
    before = tenant.service.processes()
    primary = engine("primary")
    engine("kill", primary)
    try:
        for _ in range(4):  # some on each worker
            # One that was sent to a connection as it ended is repeated first, which takes longer.
            assert refusal(tenant.post([record(at(99), n=99)])) == (503, UNAVAILABLE)
    finally:
        engine("promote")
        engine("rejoin", primary)
    until(lambda: tenant.post([record(at(100), n=100)]).status == 202)
    numbers = [fields["n"] for _, fields in tenant.rows(fields="n")]
    assert [number for number in numbers if number != 99] == [*range(10), 100]
    assert tenant.service.processes() == before


@pytest.mark.usefixtures("no_database")
def test_without_its_database_commands_end_with_one_line_that_names_it(tenant, tmp_path):
    del tenant
    (node,) = tmp_path.glob("node-*")
    for command in (["serve"], ["tenant", "list"], ["stats"], ["doctor"]):
        run = subprocess.run(
            [*FLEETCAST, *command, "--data", node], capture_output=True, check=False, text=True
        )
        assert run.returncode == 1
        assert "PostgreSQL" in run.stdout + run.stderr
        assert "Traceback" not in run.stderr
