"""One service with two workers for every test that does not break it; tenants are cheap."""

from __future__ import annotations

import subprocess

import pytest

from tests.service.service import running

from .api import accounts_of

TUNED = (
    *("--set", "limits.point_budget=20"),
    *("--set", "limits.answer_values_max=1000"),
    *("--set", "limits.series_row_limit=1"),
    *("--set", 'http.cors_origins=["https://console.example", "http://localhost:3000"]'),
)


@pytest.fixture(scope="session")
def disk(tmp_path_factory):
    """A file system of our own that a test may fill, and whether it is one: not everybody may
    mount. In memory, so that hundreds of tenants cost no time.
    """
    folder = tmp_path_factory.mktemp("conformance")
    mount = ["mount", "-t", "tmpfs", "-o", "size=256m", "none", str(folder)]
    try:
        mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    yield folder, mounted
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(scope="session")
def data(disk):
    folder, _ = disk
    return folder / "data"


@pytest.fixture(scope="session")
def service(data):
    with running(data) as started:
        yield started


@pytest.fixture(scope="session")
def accounts(service, data):
    yield from accounts_of(service, data)


@pytest.fixture
def tenant(accounts):
    """A tenant of the test's own."""
    return accounts.tenant()


@pytest.fixture(scope="session")
def quiet(accounts):
    """A tenant that nobody writes to: for requests that are refused, or find nothing."""
    return accounts.tenant("quiet")


@pytest.fixture(scope="session")
def tuned_accounts(tmp_path_factory):
    """A second service: CORS is on, and what answers may hold or look at is soon spent."""
    data = tmp_path_factory.mktemp("tuned") / "data"
    with running(data, *TUNED) as started:
        yield from accounts_of(started, data)


@pytest.fixture
def tuned(tuned_accounts):
    """A tenant of the test's own on the second service."""
    return tuned_accounts.tenant()
