"""F11: a full disk, or a quota, stops writes and not reads, and writes resume by themselves."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
from dataclasses import replace
from functools import partial

import pytest

from tests.waiting import until_well

from .api import at, record, refusal
from .test_outages import TELEMETRY_UNAVAILABLE, health, limit_files, workers

pytestmark = pytest.mark.files


def write_until_refused(tenant):
    """The rows acknowledged before the first refusal, which has to be the right one."""
    for batch in range(2000):
        first = batch * 1000
        rows = [record(at(n / 1000), n=n, noise=n * 0.37 % 1) for n in range(first, first + 1000)]
        answer = tenant.post(rows)
        if answer.status != 202:
            assert refusal(answer) == TELEMETRY_UNAVAILABLE
            assert answer.headers["Retry-After"] == "5"
            return first
    pytest.fail("the disk never filled up")


def is_full(tenant, other, acknowledged):
    """Nothing can be written, and everything can be read."""
    for one in workers(tenant):
        batch = [record(at(3000), noise=random.random()) for _ in range(1000)]
        assert refusal(one.post(batch)) == TELEMETRY_UNAVAILABLE
        degraded = health(one.service, "telemetry")
        assert (degraded.status, degraded.json["status"]) == (503, "degraded")
        assert degraded.json["checks"]["timeseries_store"]["ok"] is False
        until_well(partial(health, one.service, "topology"))
        assert replace(other, service=one.service).entities()[0]["fields"] == {"n": 5.0}
        (entity,) = one.entities()
        assert entity["fields"]["n"] == acknowledged - 1
        assert one.get("/account/state").status == 200


def resumes(tenant, acknowledged):
    tenant.write(record(at(3000), n=-1))
    written = 1
    for one in workers(tenant):
        assert one.post([record(at(3001), n=-2)]).status == 202
        until_well(partial(health, one.service, "telemetry"))
        written += 1
    usage = tenant.get("/account/state").json["usage"]
    assert usage["records_accepted_total"] == acknowledged + written


def test_f11_a_full_disk(accounts, disk):
    folder, ours = disk
    if not ours:
        pytest.skip("no file system can be mounted here")
    other, tenant = accounts.tenant(), accounts.tenant()
    other.write(record(at(5), n=5))
    ballast = folder / "ballast"
    try:
        with ballast.open("wb") as file:
            free = shutil.disk_usage(folder).free
            os.posix_fallocate(file.fileno(), 0, free - (300 << 10))
        acknowledged = write_until_refused(tenant)
        with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        is_full(tenant, other, acknowledged)
    finally:
        ballast.unlink()
    resumes(tenant, acknowledged)
    assert acknowledged > 0


def test_f11_a_quota(service, accounts):
    other, tenant = accounts.tenant(), accounts.tenant()
    other.write(record(at(5), n=5))
    tenant.write(*(record(at(n / 1000), n=n) for n in range(1000)))
    limit_files(service, 8192)
    try:
        is_full(tenant, other, 1000)
    finally:
        limit_files(service, resource.RLIM_INFINITY)
    resumes(tenant, 1000)
    assert other.entities()[0]["fields"] == {"n": 5.0}
