"""One service with two workers for every test that does not break it; tenants are cheap."""

from __future__ import annotations

import pytest

from tests.service.service import running

from .api import accounts_of

TUNED = (
    *("--set", "limits.point_budget=20"),
    *("--set", 'http.cors_origins=["https://console.example", "http://localhost:3000"]'),
)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("conformance") / "data"


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
    """A second service: CORS is on and a point budget is soon spent."""
    data = tmp_path_factory.mktemp("tuned") / "data"
    with running(data, *TUNED) as started:
        yield from accounts_of(started, data)


@pytest.fixture
def tuned(tuned_accounts):
    """A tenant of the test's own on the second service."""
    return tuned_accounts.tenant()
