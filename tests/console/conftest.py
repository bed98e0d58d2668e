from __future__ import annotations

import http.client
import json
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.service.service import Answer, running
from tests.waiting import PATIENCE_SECONDS, until

from .fleet import operator_token

if TYPE_CHECKING:
    from pathlib import Path

    from tests.service.service import Service


class Operator:
    """Somebody with a browser that shows nothing."""

    def __init__(self, service: Service, data: Path) -> None:
        self.service, self.data = service, data
        self.cookie = ""

    def ask(self, path: str, method: str = "GET", **fields: str) -> Answer:
        """A request below the console's own path."""
        return self.request(f"/console/{path}", method, **fields)

    def request(self, target: str, method: str = "GET", **fields: str) -> Answer:
        address = urlsplit(self.service.ready["admin"]).netloc
        wire = http.client.HTTPConnection(address, timeout=PATIENCE_SECONDS)
        sent = {"Cookie": self.cookie, **{k.replace("_", "-"): v for k, v in fields.items()}}
        with closing(wire):
            wire.request(method, target, headers=sent)
            response = wire.getresponse()
            return Answer(response.status, response.headers, response.read())

    def give(self, token: str) -> Answer:
        return self.ask("api/session", "POST", Authorization=f"Bearer {token}")

    def sign_in(self, token: str | None = None) -> Operator:
        answer = self.give(token or operator_token(self.data))
        assert answer.status == 200, answer.body
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        return self

    def read(self, path: str) -> dict:
        """Reads a view; again where a loaded machine took too long over the store."""

        def look() -> Answer | None:
            answer = self.ask(f"api/{path}")
            hangs = answer.status == 503 and answer.json["error"] == "store_hangs"
            return None if hangs else answer

        answer = until(look)
        assert answer.status == 200, answer.body
        return json.loads(answer.body)


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A service whose stores tests only read, and its data directory."""
    data = tmp_path_factory.mktemp("console") / "data"
    with running(data, "--admin", "127.0.0.1:0") as service:
        yield service, data


@pytest.fixture
def stranger(place):
    return Operator(*place)


@pytest.fixture(scope="session")
def operator(place):
    return Operator(*place).sign_in()
