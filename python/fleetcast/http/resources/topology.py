"""`GET /topology` and `GET /topology/series`. The engine reads parameters and makes answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from fleetcast.engine import parse_time
from fleetcast.http.answers import encode
from fleetcast.http.resources.params import Query

if TYPE_CHECKING:
    from collections.abc import Iterable

    import falcon

    from fleetcast.engine import LongAnswer, Plane, Service
    from fleetcast.http.services import Simulate

_NOTHING = b'"entities":[]}'


class LatestResource:
    """The newest sample of every entity in a window.

    If the window has no samples and the tenant has no fleet, `simulate` gives the entities and the
    `simulation` object of an instant. `simulate` is `None` if the operator turned simulation off.
    """

    def __init__(self, service: Service, simulate: Simulate | None = None) -> None:
        self._latest = service.latest
        self._simulate = simulate

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        plane: Plane = request.context.state.plane
        query = request.query_string
        chunks = self._latest(plane, query)
        if (
            self._simulate is not None
            and isinstance(chunks, list)
            and chunks[0][-len(_NOTHING) :] == _NOTHING
        ):
            document = json.loads(bytes(chunks[0]))
            as_of_ns = parse_time(document["as_of_utc"])
            simulated = self._simulate(plane, as_of_ns, Query(query).text("measurement"))
            if simulated is not None:
                document["entities"], document["simulation"] = simulated
                chunks = [encode(document)]
        _send(response, chunks)

    on_head = on_get


class SeriesResource:
    """Channels of named entities over a window."""

    def __init__(self, service: Service) -> None:
        self._series = service.series

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        _send(response, self._series(request.context.state.plane, request.query_string))

    on_head = on_get


def _send(response: falcon.Response, chunks: list[bytes | memoryview] | LongAnswer) -> None:
    # Falcon only passes the pieces on, and a socket sends the memory of the engine like `bytes`.
    response.stream = cast("Iterable[bytes]", chunks)
    if isinstance(chunks, list):
        response.content_length = sum(map(len, chunks))
