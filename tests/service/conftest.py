from __future__ import annotations

import pytest

from .service import running


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory):
    """One service with two workers for all tests that only talk to it."""
    with running(tmp_path_factory.mktemp("service") / "data") as started:
        yield started


@pytest.fixture
def own_service(tmp_path):
    """A service that a test may break."""
    with running(tmp_path / "data") as started:
        yield started
