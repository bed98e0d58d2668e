"""Stored rows as a stream of Arrow, which data frames and databases read as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fleetcast.engine import time_ns
from fleetcast.errors import refused
from fleetcast.http.resources.params import Query

if TYPE_CHECKING:
    from collections.abc import Iterable

    import falcon

    from fleetcast.engine import Plane

CONTENT_TYPE = "application/vnd.apache.arrow.stream"

_FIRST_NS, _LAST_NS = -(2**63), 2**63 - 1  # of the times that the engine can hold


class ScanResource:
    """Answers the rows with `start <= time < end`, with the columns of `Plane.scan`.

    `measurement` and `entity_id` may be given more than once; `fields` has names with commas
    between them. Without `every_row=true`, rows that have none of the `fields` are left out. The
    stream ends soon after `limit` rows.
    """

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        plane: Plane = request.context.state.plane
        query = Query(request.query_string)
        start_ns, end_ns = _time_of(query, "start"), _time_of(query, "end")
        every_row = query.text("every_row") == "true"
        limit = query.whole("limit")
        query.finish()
        if start_ns is None or end_ns is None or start_ns >= end_ns or (limit or 0) < 0:
            raise refused("invalid_range")
        fields = [name for names in query.given("fields") for name in names.split(",")]
        try:
            rows = plane.scan(
                start_ns,
                end_ns,
                measurements=query.given("measurement") or None,
                entities=query.given("entity_id") or None,
                fields=fields or None,
                every_row=every_row,
            )
            messages = rows.messages(limit)
        except ValueError:  # more fields than a table has columns
            raise refused("invalid_input", field="fields") from None
        response.content_type = CONTENT_TYPE
        response.stream = cast("Iterable[bytes]", messages)

    on_head = on_get


def _time_of(query: Query, name: str) -> int | None:
    """Returns a time in nanoseconds since 1970, cut to the times that the engine can hold."""
    text = query.text(name)
    if text is None:
        query.fault("missing", name, "Field required")
        return None
    try:
        found = int(text) if text.removeprefix("-").isdecimal() else time_ns(text)
    except ValueError:
        query.fault("datetime_parsing", name, "Input should be a valid datetime")
        return None
    return min(max(found, _FIRST_NS), _LAST_NS)
