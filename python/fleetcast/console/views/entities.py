"""Entities of a tenant and the newest state of each. The engine cuts the page and writes it."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, TypedDict

from fleetcast.console.tenant_planes import read_plane
from fleetcast.surface.answers import Answer

if TYPE_CHECKING:
    from fleetcast.console.query import ConsoleQuery
    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import EntitySort

ENTITIES_MAX = 500
POINTS_MAX = 20_000
LATITUDES = ["lat", "latitude", "lat_deg", "latitude_deg"]
LONGITUDES = ["lon", "lng", "long", "longitude", "lon_deg", "longitude_deg"]
_ENTITIES = 100
_FIRST_MAX = 100_000_000
_BYTES_MAX = 2 << 20
_AGE_SECONDS_MAX = 100 * 366 * 86_400
_NS_PER_SECOND = 1_000_000_000
_DESCENDING = "-"
_SORTS: dict[str, EntitySort] = {"": "id", "id": "id", "time": "time"}


class _Choice(TypedDict, total=False):
    measurement: str | None
    search: str
    entity_id: str | None
    tag: tuple[str, str] | None
    before_ns: int
    field: tuple[str, float, float] | None
    sort: EntitySort
    sort_field: str
    descending: bool
    first: int


def entities(services: ConsoleServices, tenant: str, query: ConsoleQuery) -> Answer:
    """Returns a page of entities, ordered by measurement and id unless `sort` says otherwise.

    Raises `ConsoleRefused`, `Refused`, `ControlStoreUnavailable`.
    """
    chosen = _choice(query)
    entities_max = query.whole("limit", _ENTITIES, ENTITIES_MAX)
    body = read_plane(
        services,
        tenant,
        lambda plane: plane.latest_page(**chosen, entities_max=entities_max, bytes_max=_BYTES_MAX),
    )
    return Answer(200, (body,))


def points(services: ConsoleServices, tenant: str, query: ConsoleQuery) -> Answer:
    """Returns measurement, id, time, latitude, longitude and a field of each entity.

    Entities are chosen as for `entities`. Raises `ConsoleRefused`, `Refused`,
    `ControlStoreUnavailable`.
    """
    chosen = _choice(query)
    field = query.text("show")
    columns = [LATITUDES, LONGITUDES, [field] if field else []]
    body = read_plane(
        services,
        tenant,
        lambda plane: plane.latest_page(
            **chosen, columns=columns, entities_max=POINTS_MAX, bytes_max=_BYTES_MAX
        ),
    )
    return Answer(200, (body,))


def _choice(query: ConsoleQuery) -> _Choice:
    """Reads which entities, and their order: `sort` is `id`, `time` or `field:NAME`, `-` reverses.

    `tag` is KEY=VALUE, `silent` the least age in seconds, and `field` a field with the bounds
    `least` and `most`. Example: `field=snr_db&most=6&sort=field:snr_db`.
    """
    key, found, value = query.text("tag").partition("=")
    if query.text("tag") and not (key and found):
        query.refuse("tag", "tag must be KEY=VALUE.")
    word = query.text("sort")
    kind, _, name = word.removeprefix(_DESCENDING).partition(":")
    if kind not in _SORTS and not (kind == "field" and name):
        query.refuse("sort", "sort must be id, time or field:NAME.")
    silent = query.whole("silent", 0, _AGE_SECONDS_MAX)
    field = query.text("field")
    bounds = (field, query.number("least", -math.inf), query.number("most", math.inf))
    chosen: _Choice = {
        "measurement": query.text("measurement") or None,
        "search": query.text("search"),
        "entity_id": query.text("entity_id") or None,
        "tag": (key, value) if key else None,
        "field": bounds if field else None,
        "sort": _SORTS.get(kind, "field"),
        "sort_field": name,
        "descending": word.startswith(_DESCENDING),
        "first": query.whole("first", 0, _FIRST_MAX),
    }
    if silent:
        chosen["before_ns"] = time.time_ns() - silent * _NS_PER_SECOND
    return chosen
