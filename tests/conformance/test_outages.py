"""B17, B23, F9, F12, O9: what fails says so, harms nobody else, and comes back by itself.

Files are taken away, cut, overwritten and put back under the running service. Each time the answer
is a 503 that says when to come back, never an empty 200.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import random
import resource
import shutil
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.waiting import until, until_well

from .api import at, record, refusal

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.files
TENANT_UNAVAILABLE = (503, {"error": "tenant_unavailable", "retry_after_seconds": 5})
TELEMETRY_UNAVAILABLE = (
    503,
    {"error": "telemetry_unavailable", "upstream": "embedded", "retry_after_seconds": 5},
)
SERIES = f"/topology/series?entity_id=e&start={at(0)}&end={at(3600)}&measurement=link"
AGAIN = 2  # times that each worker is asked the same


def workers(tenant):
    """The tenant at each worker, again and again."""
    for one in tenant.at_each_worker():
        yield from itertools.repeat(one, AGAIN)


def everywhere(tenant):
    for one in workers(tenant):
        yield one.post([record(at(100))])
        yield one.get("/topology")
        yield one.service.request("GET", SERIES, key=one.key)
        yield one.get("/account/state")


def is_down(tenant, *expected):
    for answer in everywhere(tenant):
        assert refusal(answer) in (expected or [TENANT_UNAVAILABLE])
        assert answer.headers["Retry-After"] == "5"


def numbers(tenant):
    """Answers of all workers for the series of `e`."""
    found = [[f["n"] for _, f in one.rows(fields="n")] for one in workers(tenant)]
    assert all(one == found[0] for one in found)
    return found[0]


@pytest.fixture
def filled(tenant):
    """A tenant with 1,000 rows that every worker has open."""
    tenant.write(*(record(at(n), n=n, noise=n * 0.37 % 1) for n in range(1000)))
    assert numbers(tenant) == list(range(1000))
    return tenant


@pytest.fixture
def bystander(accounts, service):
    """Another tenant. At the end it has noticed nothing, and the service goes on.

    A worker or the maintenance process may have read a mapped file when the test cut it. Such a
    process ends and is started again (decision 0015).
    """
    created = accounts.tenant()
    created.write(record(at(1), n=1))
    assert numbers(created) == [1.0]
    lasting = {service.process.pid, service.arbiter("http")}
    yield created
    created.write(record(at(2), n=2))
    assert numbers(created) == [1.0, 2.0]
    assert lasting <= set(service.processes())
    for name in ("", "/telemetry", "/topology"):
        until_well(partial(service.request, "GET", f"/health{name}", key=None))


@pytest.fixture
def neighbour(bystander, service):
    """A bystander in a test that cuts no mapped file, so that no process ends."""
    before = service.processes()
    yield bystander
    assert service.processes() == before


def test_b17_a_plane_that_is_gone(filled, neighbour, data):
    away = filled.plane.with_suffix(".away")
    filled.plane.rename(away)
    is_down(filled)
    neighbour.write(record(at(3), entity="x"))
    away.rename(filled.plane)
    assert numbers(filled) == list(range(1000))
    filled.write(record(at(1000), n=1000))
    assert numbers(filled) == list(range(1001))
    assert "store cannot be opened: " in (data / "serve.log").read_text()


def test_j5_health_says_nothing_of_one_tenants_store(service, filled):
    away = filled.plane.with_suffix(".away")
    filled.plane.rename(away)
    is_down(filled)
    for name in ("telemetry", "topology", "predictions"):
        until_well(partial(health, service, name))
    away.rename(filled.plane)
    assert numbers(filled) == list(range(1000))


@pytest.mark.usefixtures("neighbour")
@pytest.mark.parametrize("name", ["key", "plane.mdb"])
def test_f12_one_of_its_files_is_gone(filled, name):
    away = filled.plane / f"{name}.away"
    (filled.plane / name).rename(away)
    is_down(filled)
    away.rename(filled.plane / name)
    assert numbers(filled) == list(range(1000))


@pytest.mark.usefixtures("neighbour")
def test_f12_a_plane_put_back_from_a_copy_takes_writes(filled):
    """The open file is not the one in the directory any more: writing there would lose data."""
    copy = filled.plane.with_suffix(".copy")
    shutil.copytree(filled.plane, copy)
    filled.write(record(at(1000), n=1000))
    shutil.rmtree(filled.plane)
    copy.rename(filled.plane)
    filled.write(record(at(1001), n=1001))
    assert numbers(filled) == [*range(1000), 1001]


@contextlib.contextmanager
def changed(path: Path, change):
    """Changes a file in place, and puts its bytes back in place."""
    whole = path.read_bytes()
    change(path)
    try:
        yield
    finally:
        with path.open("r+b") as file:
            file.write(whole)
            file.truncate(len(whole))


def cut(size):
    def change(path):
        os.truncate(path, size)

    return change


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("size", [0, 100, 4096, 8192, 20_000])
def test_f12_a_plane_cut_short(filled, size):
    """Whoever finds it so leaves it so: others tell by its length that it is not whole."""
    path = filled.plane / "plane.mdb"
    with changed(path, cut(size)):
        is_down(filled, TENANT_UNAVAILABLE, TELEMETRY_UNAVAILABLE)
        assert path.stat().st_size == size
    assert numbers(filled) == list(range(1000))


def overwritten(first, last, fill):
    """Changes every byte of a part of a file, given in tenths of its length."""

    def change(path):
        size = path.stat().st_size
        start, end = size * first // 10, size * last // 10
        with path.open("r+b") as file:
            file.seek(start)
            file.write(fill(end - start))

    return change


@pytest.mark.parametrize("fill", [bytes, random.Random(7).randbytes], ids=["zeros", "noise"])
@pytest.mark.parametrize(("first", "last"), [(0, 10), (0, 5), (5, 10), (1, 10)])
def test_f12_a_plane_overwritten(service, accounts, filled, first, last, fill):
    """LMDB trusts the pages it has mapped: a worker may end, but only once, and not for good.

    The maintenance process may end as well: it looks at a new tenant within a second.
    """
    before = set(service.processes()) - {service.arbiter("maintenance")}
    lasting = {service.process.pid, service.arbiter("http")}
    with changed(filled.plane / "plane.mdb", overwritten(first, last, fill)):
        lost = 0
        for _ in range(8):
            try:
                is_down(filled, TENANT_UNAVAILABLE, TELEMETRY_UNAVAILABLE)
            except (ConnectionError, http.client.HTTPException):
                lost += 1
        assert lost <= 2
        assert lasting <= set(service.processes())
        assert len(before - set(service.processes())) <= 2
        is_down(filled)
        assert numbers(accounts.tenant()) == []
    assert numbers(filled) == list(range(1000))


@pytest.mark.usefixtures("neighbour")
@pytest.mark.parametrize("size", [0, 10])
def test_f12_a_key_cut_short(filled, size):
    with changed(filled.plane / "key", cut(size)):
        is_down(filled)
    assert numbers(filled) == list(range(1000))


def test_f12_another_tenants_key(filled, neighbour):
    def change(path):
        path.write_bytes((neighbour.plane / "key").read_bytes())

    with changed(filled.plane / "key", change):
        is_down(filled)
    assert numbers(filled) == list(range(1000))


@pytest.mark.usefixtures("neighbour")
def test_f12_a_damaged_block(filled):
    """One bit: nothing wrong is ever answered, and opening the store finds it."""
    path = max((filled.plane / "log").iterdir())
    offset = len(path.read_bytes().rstrip(b"\0")) - 100

    def flip(_):
        with path.open("r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 1]))

    with changed(path, flip):
        # Blocks that a process still has decoded are right; nothing else may come back.
        for one in workers(filled):
            answer = one.service.request("GET", SERIES, key=one.key)
            if answer.status == 200:
                assert answer.json["series"][0]["channels"]["n"] == list(range(1000))
            else:
                assert refusal(answer) in (TELEMETRY_UNAVAILABLE, TENANT_UNAVAILABLE)
        # Another file under the name is opened anew, and every block of it is looked at.
        plane = filled.plane / "plane.mdb"
        other = plane.with_suffix(".other")
        shutil.copy(plane, other)
        first = plane.with_suffix(".first")
        plane.rename(first)
        other.rename(plane)
        is_down(filled)
        first.rename(plane)
    assert numbers(filled) == list(range(1000))
    filled.write(record(at(1000), n=1000))


def health(service, name):
    return service.request("GET", f"/health/{name}", key=None)


def limit_files(service, size):
    """Bounds what each process of the service may write into one file, from now on."""
    for process in service.processes():
        _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (size, hard))


def control_is_down(tenant):
    reads = (503, {"error": "auth_unavailable", "retry_after_seconds": 5})
    writes = (503, {"error": "entitlement_unavailable", "retry_after_seconds": 5})
    for one in workers(tenant):
        assert refusal(one.post([record(at(1))])) == writes
        for path in ("/topology", SERIES, "/predictions", "/account/state"):
            answer = one.service.request("GET", path, key=one.key)
            assert refusal(answer) == reads
            assert answer.headers["Retry-After"] == "5"
        until(partial(is_degraded_by_the_control_store_alone, one.service))
        assert one.service.request("GET", "/health", key=None).status == 200
        for name in ("topology", "predictions"):
            until_well(partial(health, one.service, name))


def is_degraded_by_the_control_store_alone(service):
    """True unless a probe of another took too long, too (J2)."""
    answer = health(service, "telemetry")
    assert (answer.status, answer.json["status"]) == (503, "degraded")
    assert answer.json["checks"]["auth_store"]["ok"] is False
    return answer.json["checks"]["timeseries_store"]["ok"]


def outcomes(tenant):
    """Outcomes of refused writes: by the front, and by the application."""
    for version in (11, 10):
        batch = [record(at(3000), noise=random.random()) for _ in range(1000)]
        with contextlib.closing(tenant.service.connect(version)) as wire:
            answer = tenant.post(batch, connection=wire)
        assert answer.status == 503
        yield answer.headers["X-Write-Outcome"]
        assert tenant.service.request("GET", "/topology").headers["X-Write-Outcome"] is None


def test_o9_what_is_refused_leaves_nothing(service, neighbour, data):
    """Before the store is asked, and by the store."""
    (data / "control").rename(data / "control.away")
    try:
        assert list(outcomes(neighbour)) == ["none", "none"]
    finally:
        (data / "control.away").rename(data / "control")
    limit_files(service, 8192)
    try:
        assert list(outcomes(neighbour)) == ["none", "none"]
    finally:
        limit_files(service, resource.RLIM_INFINITY)
    assert numbers(neighbour) == [1.0]


def test_b23_the_control_store_is_gone(neighbour, data):
    (data / "control").rename(data / "control.away")
    try:
        control_is_down(neighbour)
    finally:
        (data / "control.away").rename(data / "control")
    assert neighbour.get("/topology").status == 200


@pytest.mark.parametrize("size", [0, 100, 8192])
def test_b23_the_control_store_is_cut_short(bystander, data, size):
    with changed(data / "control" / "data.mdb", cut(size)):
        control_is_down(bystander)
    assert bystander.get("/topology").status == 200


def test_b23_a_missing_key_is_401_even_then(neighbour, data):
    """No key was sent: that much is known without the control store."""
    (data / "control").rename(data / "control.away")
    try:
        answer = neighbour.service.request("GET", "/topology", key=None)
    finally:
        (data / "control.away").rename(data / "control")
    assert refusal(answer) == (401, {"error": "auth_failed"})
