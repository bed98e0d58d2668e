from __future__ import annotations

import pytest

from .service import running


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory):
    """One service with two workers for all tests that only talk to it.

    Its deadlines are longer than any test, so that a slow machine ends no connection by them.
    """
    deadlines = ("http.read_deadline_seconds=600", "http.request_deadline_seconds=600")
    options = [option for deadline in deadlines for option in ("--set", deadline)]
    with running(tmp_path_factory.mktemp("service") / "data", *options) as started:
        yield started
