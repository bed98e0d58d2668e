"""The adapter application on stores of its own, and a client that speaks to it."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING

from falcon.testing import TestClient

from fleetcast.adapters.app import create_app
from fleetcast.config import Settings
from fleetcast.config.name_mapping import read_names
from fleetcast.engine import NameMapping, format_time
from fleetcast.http.rules import adapter_rules
from fleetcast.http.services import HttpServices
from fleetcast.metrics import Counters
from tests.http.stores import Stores

if TYPE_CHECKING:
    from pathlib import Path

SECOND_NS = 1_000_000_000
NOW_S = 1_790_000_000
NOW_NS = NOW_S * SECOND_NS


class Served:
    """The application, and all that is stored there.

    Its keys are `good`, `reader` without the scope, and `idle` without the entitlement.
    """

    def __init__(self, mapping: NameMapping | None = None, settings: Settings | None = None):
        self.stores = Stores()
        self.stores.key("reader", scopes=["topology:read"])
        self.stores.tenants.create("idle", live_ingest=False)
        self.stores.key("idle", "idle")
        settings, counters = settings or Settings(), Counters.alone()
        mapping = mapping or NameMapping([], (None, "", None))
        files = self.stores.folder / "limiter", self.stores.folder / "adapters"
        service = self.stores.service(adapter_rules(settings, *files, counters, mapping))
        services = HttpServices(
            settings=settings, service=service, engine=self.stores.engine, counters=counters
        )
        self.client = TestClient(create_app(services))

    def post(self, path, body, headers=None, **parameters):
        sent = {"x-api-key": "good"} if headers is None else dict(headers)
        if not body:  # the test client has no length for it
            sent["content-length"] = "0"
        if "x-api-key" in sent:
            sent["x-api-key"] = self.stores.text(sent["x-api-key"])
        if "authorization" in sent:
            sent["authorization"] = self._authorization(*sent["authorization"].split(" "))
        return self.client.simulate_post(path, body=body, headers=sent, params=parameters)

    def rows(self) -> list[tuple[str, str, dict, dict]]:
        """Measurement, time, tags and fields of all that is stored, in the order of a scan."""
        found = []
        for batch in self.stores.plane().scan(0, 2**63 - 1):
            found += [json.loads(line) for line in batch.json_lines().splitlines()]
        return [(row["measurement"], row["time"], row["tags"], row["fields"]) for row in found]

    def _authorization(self, scheme: str, credentials: str) -> str:
        """`name:key` is what a client packs."""
        name, colon, key = credentials.rpartition(":")
        credentials = f"{name}{colon}{self.stores.text(key)}"
        return f"{scheme} {b64encode(credentials.encode()).decode() if colon else credentials}"


def time_of(seconds: float) -> str:
    return format_time(int(seconds * SECOND_NS))


def mapping_of(folder: Path, text: str) -> NameMapping:
    file = folder / "adapters.toml"
    file.write_text(text)
    return read_names(file)
