"""Loads the fleet over HTTP and gRPC, and asks every endpoint once."""

from __future__ import annotations

import json
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from fleetcast.client import GatewayWriter
from fleetcast.client.batches import bodies
from fleetcast.client.connection import ApiError, RestingConnection
from fleetcast.errors import OperatorError
from fleetcast.extras import is_installed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from fleetcast.cli.demo.fleet import Record
    from fleetcast.client import RefusedBatch

_TIMEOUT_SECONDS = 60.0


class Reply(NamedTuple):
    """A request and its answer."""

    request: str
    status: int
    body: Any

    def expect(self, *statuses: int) -> Reply:
        """Raises `OperatorError` if the answer has another status."""
        if self.status not in statuses:
            message = f"{self.request} answered {self.status}: {json.dumps(self.body)}"
            raise OperatorError(message)
        return self


class HttpSession:
    """Requests of a key to the service at `base_url`. An answer with any status is returned."""

    def __init__(self, base_url: str, key: str) -> None:
        self._connection = RestingConnection(base_url, key, _TIMEOUT_SECONDS)
        self.close = self._connection.close

    def get(self, path: str) -> Reply:
        """Asks for a path. Raises `OSError`, `OperatorError`."""
        return self._exchange("GET", path, None)

    def write(self, body: bytes) -> Reply:
        """Writes one batch. Raises `OSError`, `OperatorError`."""
        return self._exchange("POST", "/telemetry", body)

    def _exchange(self, method: str, path: str, body: bytes | None) -> Reply:
        request = f"{method} {path}"
        try:
            answer = self._connection.exchange(method, path, body)
        except ApiError as error:
            if not isinstance(error.body, dict):
                message = f"{request} did not answer in JSON"
                raise OperatorError(message) from error
            return Reply(request, error.status, error.body)
        return Reply(request, HTTPStatus.OK if body is None else HTTPStatus.ACCEPTED, answer)


class Gateway:
    """The writer of a ground station, over gRPC."""

    def __init__(self, ready: Mapping[str, str | None], key: str) -> None:
        self._refused: list[RefusedBatch] = []
        self._writer = GatewayWriter(
            ready["grpc"] or "",
            key,
            authority=Path(ready["grpc_ca"] or "").read_bytes(),
            on_refused=self._refused.append,
        )

    def write(self, record: Record) -> None:
        """Takes one record."""
        self._writer.write(record)

    def end(self) -> Reply:
        """Waits until all records are stored. Raises `OperatorError` if some are not."""
        complete = self._writer.flush(_TIMEOUT_SECONDS)
        self._writer.close(0.0)
        tally = self._writer.tally
        if self._refused or not complete:
            why = f"refused as {self._refused[0].details}" if self._refused else "not sent in time"
            message = f"TelemetryIngest.Write: records were {why}"
            raise OperatorError(message)
        counts = {"accepted_count": tally.accepted, "rejected_count": tally.rejected}
        return Reply("gRPC TelemetryIngest.Write", 0, counts)


def load(client: HttpSession, records: Iterable[Record]) -> tuple[int, Reply]:
    """Writes all records. Returns their number and the last acknowledgment.

    Raises `OSError`, `OperatorError`.
    """
    answers = [client.write(body.content).expect(202) for body in bodies(list(records))]
    return sum(answer.body["accepted_count"] for answer in answers), answers[-1]


def read_paths(entities: list[str], now: datetime) -> dict[str, tuple[int, ...]]:
    """Returns a path for every read endpoint, and the statuses that it may answer with.

    Without the extra `forecast`, predictions answer with an error.
    """
    predicted = HTTPStatus.OK if is_installed("forecast") else HTTPStatus.NOT_FOUND
    named = [("entity_id", entity) for entity in entities]
    raw = [*named, ("start", _text(now - timedelta(minutes=3))), ("measurement", "link")]
    windows = [
        *named,
        ("start", _text(now - timedelta(hours=2))),
        ("measurement", "link"),
        ("interval", "15m"),
        ("agg", "mean"),
    ]
    links = [("link_ids", entity) for entity in entities]
    return {
        "/health": (200,),
        "/health/telemetry": (200,),
        "/health/topology": (200,),
        "/health/predictions": (200,),
        "/topology?measurement=link": (200,),
        f"/topology/series?{urlencode(raw)}": (200,),
        f"/topology/series?{urlencode(windows)}": (200,),
        f"/predictions?{urlencode(links)}": (predicted,),
        "/account/state": (200,),
    }


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
