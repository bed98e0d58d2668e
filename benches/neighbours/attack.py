"""An attack, and the floods of HTTP that many are."""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import SimpleNamespace

CONNECTIONS = 4
TIMEOUT_SECONDS = 60

Request = tuple[str, str, bytes | None]


class Attack:
    """`prepare` once, then `run` for a while at a time; `count` says what was answered."""

    def __init__(self, target: SimpleNamespace) -> None:
        self.target = target
        self.count: Counter[str] = Counter()
        self._turns = itertools.count()

    def prepare(self) -> None:
        """Makes what the attack needs to be there."""

    def request(self, turn: int) -> Request:
        """The next request of a flood."""
        raise NotImplementedError

    def run(self, until: float) -> None:
        """Floods until that instant of `time.monotonic`, each connection as it is answered."""
        threads = [threading.Thread(target=self._flood, args=(until,)) for _ in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def post(self, *bodies: bytes) -> None:
        for body in bodies:
            status, answer = self._ask(self._connection(), ("POST", "/telemetry", body))
            assert status == 202, answer

    def _flood(self, until: float) -> None:
        connection = self._connection()
        while time.monotonic() < until:
            request = self.request(next(self._turns))
            try:
                status, _ = self._ask(connection, request)
                self.count[f"{request[0]} {status}"] += 1
            except (OSError, http.client.HTTPException) as error:
                self.count[type(error).__name__] += 1
                connection.close()
        connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.target.address, timeout=TIMEOUT_SECONDS)

    def _ask(self, connection: http.client.HTTPConnection, request: Request) -> tuple[int, bytes]:
        method, path, body = request
        fields = {"X-Api-Key": self.target.key, "Content-Type": "application/json"}
        connection.request(method, path, body=body, headers=fields)
        answer = connection.getresponse()
        return answer.status, answer.read()
