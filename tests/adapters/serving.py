"""The adapter application on a plane in memory, and a client that speaks to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from falcon.testing import TestClient

from fleetcast.accounts import Identity, InvalidKey
from fleetcast.adapters.app import create_app
from fleetcast.config import Settings
from fleetcast.config.name_mapping import read_names
from fleetcast.engine import NameMapping, Plane, format_time
from fleetcast.errors import refused
from fleetcast.http.services import HttpServices

if TYPE_CHECKING:
    from pathlib import Path

KEY = "good"
SECOND_NS = 1_000_000_000
NOW_S = 1_790_000_000
NOW_NS = NOW_S * SECOND_NS


class Keys:
    """Three keys: `good`, `reader` without the scope, and `idle` without the entitlement."""

    def authenticate(self, text: str | None) -> Identity:
        if text is None:
            raise refused("auth_failed")
        if text not in {KEY, "reader", "idle"}:
            raise InvalidKey
        scope = "topology:read" if text == "reader" else "telemetry:write"
        return Identity(
            account_id="a1",
            tenant_key="acme",
            key_id="k1",
            environment="sandbox",
            scopes=frozenset({scope}),
            plan="pro",
            live_ingest=text != "idle",
            status="active",
        )


class Engine:
    """One plane for everybody."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def plane(self, _account_id: str, _tenant_key: str) -> Plane:
        return self._plane


class Open:
    """A limiter that notes addresses of bad keys and lets everything pass."""

    def __init__(self) -> None:
        self.failures = 0

    def admit(self, _address: str) -> None:
        pass

    check_lockout = admit

    def record_failure(self, _address: str) -> None:
        self.failures += 1


class Served:
    """The application, its plane, and all that is stored there."""

    def __init__(self, mapping: NameMapping | None = None, settings: Settings | None = None):
        self.plane = Plane.in_memory("acme")
        self.limiter = Open()
        services = HttpServices(
            settings=settings or Settings(),
            authenticator=Keys(),
            engine=Engine(self.plane),
            limiter=self.limiter,
        )
        mapping = mapping or NameMapping([], (None, "", None))
        self.client = TestClient(create_app(services, mapping))

    def post(self, path, body, headers=None, **parameters):
        headers = {"x-api-key": KEY} if headers is None else headers
        if not body:  # the test client has no length for it
            headers = {**headers, "content-length": "0"}
        return self.client.simulate_post(path, body=body, headers=headers, params=parameters)

    def rows(self) -> list[tuple[str, str, dict, dict]]:
        """Measurement, time, tags and fields of all that is stored, in the order of a scan."""
        found = []
        for batch in self.plane.scan(0, 2**63 - 1):
            found += [json.loads(line) for line in batch.json_lines().splitlines()]
        return [(row["measurement"], row["time"], row["tags"], row["fields"]) for row in found]


def time_of(seconds: float) -> str:
    return format_time(int(seconds * SECOND_NS))


def mapping_of(folder: Path, text: str) -> NameMapping:
    file = folder / "adapters.toml"
    file.write_text(text)
    return read_names(file)
