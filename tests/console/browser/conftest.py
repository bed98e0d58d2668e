from __future__ import annotations

import pytest

from tests.console.fleet import fleet

from .driver import Console, browser, missing


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    reason = missing()
    if reason:
        pytest.skip(reason)
    with fleet(tmp_path_factory.mktemp("fleet") / "data") as started:
        yield started


@pytest.fixture(scope="session", params=["light", "dark"])
def console(request, service):
    with browser(dark=request.param == "dark") as driver:
        shown = Console(driver, service)
        shown.resize(1280)
        shown.sign_in()
        yield shown
