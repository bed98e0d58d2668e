"""Questions in Prometheus' language: the engine reads parameters, evaluates and makes answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fleetcast.console.answers import ConsoleRefused
from fleetcast.console.tenant_planes import read_plane
from fleetcast.surface.answers import Answer

if TYPE_CHECKING:
    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import Plane

API = "api/v1/"

# A question ends itself before the console takes the store for a store that hangs.
_SECONDS_MAX = 4
_BYTES_MAX = 8_000_000
_MEGABYTE = 1_000_000


def question(services: ConsoleServices, tenant: str, path: str, query_string: str) -> Answer:
    """Answers a path of Prometheus' HTTP API from the samples of a tenant.

    The bounds are those of the listener for other protocols, and at most 4 seconds and 8 MB.
    Raises `ConsoleRefused`, `ControlStoreUnavailable`.
    """
    bounded = f"timeout={_SECONDS_MAX}s&{query_string}"  # the first value of a parameter counts

    def read(plane: Plane) -> tuple[int, str | None, list[memoryview]]:
        return services.evaluator().ask(plane, f"/{path}", bounded, b"")

    status, error, pieces = read_plane(services, tenant, read)
    if error is not None:
        message = json.loads(b"".join(pieces))["error"]
        if error == "timeout":
            message = f"{message}; the console waits for {_SECONDS_MAX} s"
        raise ConsoleRefused(status, error, message)
    length = sum(map(len, pieces))
    if length > _BYTES_MAX:
        message = (
            f"the answer has {length / _MEGABYTE:.0f} MB, the console shows"
            f" {_BYTES_MAX / _MEGABYTE:.0f} MB: choose fewer series, for example with sum or topk"
        )
        raise ConsoleRefused(422, "execution", message)
    return Answer(200, pieces)
