"""B17, F9, F12, L15: a store that fails is UNAVAILABLE, and back as soon as its files are.

Outages as over HTTP (`tests/conformance`), in the one process that holds all tenants.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

from tests.conformance.api import HOUR_S

from .messages import SECOND_NS, encode, record

ROWS = 200


def write(station, tenant, first, count=1):
    numbers = range(first, first + count)
    records = [record((HOUR_S + n) * SECOND_NS, fields={"n": float(n)}) for n in numbers]
    return station.write(encode(*records), tenant.key)


def numbers(tenant):
    return [fields["n"] for _, fields in tenant.rows(fields="n")]


@contextmanager
def moved_away(plane):
    away = plane.with_suffix(".away")
    plane.rename(away)
    yield
    away.rename(plane)


@contextmanager
def one_file_moved_away(plane):
    with moved_away(plane / "key"):
        yield


@contextmanager
def cut_short(plane):
    path = plane / "plane.mdb"
    whole = path.read_bytes()
    os.truncate(path, 20_000)
    yield
    with path.open("r+b") as file:
        file.write(whole)


@pytest.mark.parametrize("broken", [moved_away, one_file_moved_away, cut_short])
def test_a_store_that_fails_is_back_with_its_files(service_and_data, station, accounts, broken):
    service, data = service_and_data
    tenant, neighbour = accounts.tenant(), accounts.tenant()
    processes = service.processes()
    # The second call learns how long the file has become with the first.
    assert write(station, tenant, 0, ROWS - 1).status == "OK"
    assert write(station, tenant, ROWS - 1).status == "OK"
    with broken(tenant.plane):
        for _ in range(3):
            outcome = write(station, tenant, ROWS)
            assert outcome.status == "UNAVAILABLE"
            assert outcome.details in {"tenant_unavailable", "telemetry_unavailable"}
            assert outcome.retry_seconds == 5  # L6
            assert write(station, neighbour, 0).status == "OK"
    assert write(station, tenant, ROWS).status == "OK"
    assert numbers(tenant) == list(range(ROWS + 1))
    assert "store cannot be opened: " in (data / "serve.log").read_text()
    assert service.processes() == processes
