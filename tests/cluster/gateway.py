"""A client of one node, as a writer of a load has it."""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from fleetcast.errors import StoreUnreachable
from tests.service.service import new_tenant

from .load import START, Load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.installation.opening import Installation
    from tests.service.service import Answer, Service

UNAVAILABLE = {
    "error": "telemetry_unavailable",
    "upstream": "postgresql",
    "retry_after_seconds": 5,
}
ALL = {"start": START.isoformat(), "end": (START + timedelta(hours=2)).isoformat()}


@dataclass
class Gateway:
    """A client of one node."""

    service: Service
    key: str

    def write_json(self, body: bytes) -> None:
        try:
            answer = self.service.post(body, key=self.key)
        except (OSError, http.client.HTTPException) as error:
            raise StoreUnreachable(str(error)) from error
        if answer.status == 503:
            assert answer.json == UNAVAILABLE
            raise StoreUnreachable(answer.body)
        assert answer.status == 202, answer.body

    def newest(self) -> Answer:
        return self.service.get("/topology", key=self.key, freshness_seconds=86400)

    def rows(self) -> Answer:
        chosen = {"entity_id": "e0", "measurement": "link", "interval": "1h"}
        return self.service.get("/topology/series", key=self.key, **ALL, **chosen)


def tenant_load(
    installation: Installation, name: str, services: Sequence[Service]
) -> tuple[Load, list[Gateway]]:
    """Makes a tenant. Returns its writers and a client of each node.

    The reader of the load reads in this process, by its clock.
    """
    account, issued = new_tenant(installation, name)
    gateways = [Gateway(service, str(issued.text)) for service in services]
    reader = installation.engine.plane(account.account_id, name)
    return Load(gateways, reader, ()), gateways
