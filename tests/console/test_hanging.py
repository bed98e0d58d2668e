"""A store that hangs: no other view waits for it, and no thread is lost to it."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fleetcast.console.answers import ConsoleRefused
from fleetcast.console.tenant_reads import THREADS_MAX, THREADS_PER_TENANT_MAX, TenantReads
from fleetcast.installation.directory import DataDirectory
from tests.service.service import ask, command
from tests.waiting import PATIENCE_SECONDS, until


@pytest.fixture
def stuck(place):
    """Makes a tenant whose store waits at its key file; gives its name, and what frees it."""
    data, made = place[1], []

    def make():
        made.append(f"stuck-{len(made)}")
        account = command(data, "tenant", "create", made[-1])["account_id"]
        key = DataDirectory(data).planes / account / "key"
        content = key.read_bytes()
        aside = key.with_name("aside")
        key.rename(aside)
        os.mkfifo(key)

        def free():
            """Gives everybody who waits the key."""
            aside.rename(key.with_name("again"))
            waiting = os.open(key, os.O_RDWR | os.O_NONBLOCK)
            os.write(waiting, content)
            key.with_name("again").rename(key)
            os.close(waiting)

        return made[-1], free

    yield make
    for tenant in made:
        command(data, "tenant", "delete", tenant, "--yes")


def test_a_store_that_hangs_delays_no_other_view(operator, stuck):
    with ThreadPoolExecutor(1) as beside:

        def all_others_are_answered_meanwhile():
            tenant, free = stuck()
            path = f"api/tenants/{tenant}/entities"
            waiting = beside.submit(operator.ask, path)
            others = ("tenants", "storage", "processes", "refusals", "tenants/acme/entities")
            shown = [operator.ask(f"api/{other}").status for other in others]
            assert ask(operator.service, "/livez").status == 200
            meanwhile = not waiting.done() and shown == [200] * len(others)
            answer = waiting.result(PATIENCE_SECONDS)
            assert (answer.status, answer.json["error"]) == (503, "store_hangs")
            # From now on nobody waits for it.
            assert operator.ask(path).json["error"] == "store_hangs"
            free()
            until(lambda: operator.ask(path).status != 503)
            return meanwhile

        # A slow machine may take longer than a view waits; who waits behind it always does.
        until(all_others_are_answered_meanwhile)


@pytest.fixture
def gate():
    made = threading.Event()
    yield made
    made.set()


def test_reads_that_hang_take_no_more_than_their_tenants_share(gate):
    reads = TenantReads(patience_seconds=0.01)
    for number in range(THREADS_MAX // THREADS_PER_TENANT_MAX):
        tenant = f"t{number}"
        with pytest.raises(ConsoleRefused, match="store_hangs"):
            reads.run(tenant, gate.wait)
        with pytest.raises(ConsoleRefused, match="store_hangs"):
            reads.run(tenant, lambda: pytest.fail("it was read all the same"))
    until(lambda: answers(reads, "well"))  # a slow machine may need longer than the patience
    gate.set()
    until(lambda: answers(reads, "t0"))


def answers(reads, tenant):
    try:
        return reads.run(tenant, lambda: True)
    except ConsoleRefused:
        return False


def test_a_tenant_has_so_many_threads_and_no_more(gate):
    reads = TenantReads(patience_seconds=PATIENCE_SECONDS)
    with ThreadPoolExecutor(THREADS_PER_TENANT_MAX) as beside:
        begun = [threading.Event() for _ in range(THREADS_PER_TENANT_MAX)]

        def wait(mine):
            mine.set()
            return gate.wait()

        asked = [beside.submit(reads.run, "busy", lambda mine=mine: wait(mine)) for mine in begun]
        assert all(event.wait(PATIENCE_SECONDS) for event in begun)
        with pytest.raises(ConsoleRefused, match="busy"):
            reads.run("busy", lambda: 7)
        assert reads.run("other", lambda: 7) == 7
        gate.set()
        assert all(each.result() for each in asked)


def test_an_error_of_a_read_is_its_own():
    reads = TenantReads()
    with pytest.raises(TimeoutError):
        reads.run("t", lambda: (_ for _ in ()).throw(TimeoutError))
    assert reads.run("t", lambda: 7) == 7
