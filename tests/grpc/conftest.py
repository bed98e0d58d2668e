"""One service with TLS on a free port for every test that does not break it."""

from __future__ import annotations

import pytest

from tests.conformance.api import accounts_of
from tests.service.service import prepare, running, start

from .station import Station

ON = ("--grpc", "127.0.0.1:0", "--workers", "1")


@pytest.fixture(scope="session")
def service_and_data(tmp_path_factory):
    data = tmp_path_factory.mktemp("grpc") / "data"
    with running(data, *ON) as started:
        yield started, data


@pytest.fixture(scope="session")
def service(service_and_data):
    return service_and_data[0]


@pytest.fixture(scope="session")
def accounts(service_and_data):
    yield from accounts_of(*service_and_data)


@pytest.fixture(scope="session")
def station(service):
    opened = Station(service.ready)
    yield opened
    opened.close()


@pytest.fixture
def tenant(accounts):
    """A tenant of the test's own."""
    return accounts.tenant()


@pytest.fixture
def own(tmp_path):
    """Starts a service of the test's own, for one that stops or breaks it."""
    data = tmp_path / "data"
    key = prepare(data)
    started = []

    def own(*options, **environment):
        started.append(start(data, key, *ON, *options, **environment))
        return started[-1]

    own.data = data
    own.key = key
    yield own
    for service in started:
        service.end()
