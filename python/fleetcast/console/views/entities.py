"""Entities of a tenant and the newest state of each. The engine cuts the page and writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.console.answers import Answer
from fleetcast.console.tenant_planes import read_plane

if TYPE_CHECKING:
    from fleetcast.console.query import ConsoleQuery
    from fleetcast.console.services import ConsoleServices

ENTITIES_MAX = 500
_ENTITIES = 100
_FIRST_MAX = 100_000_000
_BYTES_MAX = 2 << 20


def entities(services: ConsoleServices, tenant: str, query: ConsoleQuery) -> Answer:
    """Returns a page of entities, ordered by measurement and id.

    Raises `ConsoleRefused`, `Refused`, `ControlStoreUnavailable`.
    """
    measurement = query.text("measurement") or None
    search, entity_id = query.text("search"), query.text("entity_id") or None
    first = query.whole("first", 0, _FIRST_MAX)
    entities_max = query.whole("limit", _ENTITIES, ENTITIES_MAX)
    body = read_plane(
        services,
        tenant,
        lambda plane: plane.latest_page(
            measurement=measurement,
            search=search,
            entity_id=entity_id,
            first=first,
            entities_max=entities_max,
            bytes_max=_BYTES_MAX,
        ),
    )
    return Answer(200, (body,))
