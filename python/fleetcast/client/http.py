"""`Client`: writes and reads over HTTP, as JSON or as polars frames."""

from __future__ import annotations

import json
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

from fleetcast.client.connection import ApiError, RestingConnection
from fleetcast.client.reconcile import holds, probes
from fleetcast.client.times import time_ns, time_text
from fleetcast.engine import encode_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from fleetcast.client.records import Record

Time = datetime | str


class Client:
    """A key's view of the service at `base_url`. One connection; not to be shared by threads.

    The service closes a connection that rests for a minute: the next request opens another.
    """

    def __init__(self, base_url: str, key: str, *, timeout_seconds: float = 30.0) -> None:
        self._connection = RestingConnection(base_url, key, timeout_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def write(self, records: Iterable[Record]) -> dict[str, Any]:
        """Writes one batch and gives the acknowledgment.

        Raises `KeyError`, `TypeError` or `ValueError` for what is no record. Raises `ApiError` for
        every answer that is no acknowledgment, such as a proxy's. Raises `OSError` where the
        connection is lost: then nobody knows whether the batch was stored, and it must be looked
        up before it is sent again, see `was_stored`.
        """
        batch = [{**record, "time": time_text(record["time"])} for record in records]
        body = encode_json(batch, datetimes=False)
        if body is None:
            body = json.dumps(batch, allow_nan=False).encode()
        return self._connection.exchange("POST", "/telemetry", body, has=("accepted_count", int))

    def was_stored(self, records: Iterable[Record]) -> bool:
        """True where a batch was stored whose write ended without an answer.

        For a whole batch as it was sent, and only when its writer has given up: one that the
        service still works on is not seen, and in asynchronous mode none before it is flushed.
        Up to three records are looked up, a request each.

        Raises `ValueError` where no record can be found again: each of them has no entity or no
        field, or a time before 2000 or to come. Raises `ApiError`, `OSError`.
        """
        chosen = probes(records)
        if not chosen:
            message = "no record of the batch can be looked up"
            raise ValueError(message)
        return any(holds(self._at_instant(record), record) for record in chosen)

    def _at_instant(self, record: Record) -> list[dict[str, Any]]:
        """Entities as of the second that ends with the record's instant."""
        just_after = time_text(time_ns(record["time"]) + 1)
        entities: list[dict[str, Any]] = self.topology(as_of=just_after, freshness_seconds=1)[
            "entities"
        ]
        return entities

    def topology(
        self,
        measurement: str | None = None,
        *,
        as_of: Time | None = None,
        freshness_seconds: int | None = None,
    ) -> dict[str, Any]:
        """The newest sample of every entity. Raises `ApiError`, `OSError`."""
        chosen = {
            "measurement": measurement,
            "as_of_utc": as_of,
            "freshness_seconds": freshness_seconds,
        }
        return self._get("/topology", chosen, has=("entities", list))

    def topology_frame(
        self,
        measurement: str,
        *,
        as_of: Time | None = None,
        freshness_seconds: int | None = None,
    ) -> pl.DataFrame:
        """As `topology`: `entity_id`, `observed_at`, `tags` (JSON), then a column per field."""
        from fleetcast.client import frames  # noqa: PLC0415 - polars is slow to load

        answer = self.topology(measurement, as_of=as_of, freshness_seconds=freshness_seconds)
        return frames.topology(answer)

    def series(
        self,
        entity_ids: Sequence[str],
        *,
        start: Time,
        measurement: str,
        end: Time | None = None,
        fields: Sequence[str] | None = None,
        interval: str | None = None,
        agg: str | None = None,
    ) -> dict[str, Any]:
        """One page of channels over time. Raises `ApiError`, `OSError`."""
        chosen = {
            "entity_id": list(entity_ids),
            "start": start,
            "end": end,
            "measurement": measurement,
            "fields": ",".join(fields) if fields else None,
            "interval": interval,
            "agg": agg,
        }
        return self._get("/topology/series", chosen)

    def series_frame(
        self,
        entity_ids: Sequence[str],
        *,
        start: Time,
        **chosen: Any,  # noqa: ANN401 - as `series`
    ) -> pl.DataFrame:
        """As `series`, all pages: `entity_id`, `time`, then a column per channel."""
        from fleetcast.client import frames  # noqa: PLC0415 - polars is slow to load

        pages = []
        page_start: Time | None = start
        while page_start is not None:
            page = self.series(entity_ids, start=page_start, **chosen)
            pages.append(page)
            page_start = page.get("next_start") if page.get("truncated") else None
        return frames.series(pages)

    def predictions(
        self, entity_ids: Sequence[str], *, family: str = "snr", horizon_minutes: int | None = None
    ) -> dict[str, Any]:
        """Forecasts of links (`snr`) or pools (`demand`). Raises `ApiError`, `OSError`.

        An entity without a new one is in `entity_errors`, and may be in `items` as well.
        """
        chosen = {
            "model_family": family,
            "link_ids": list(entity_ids),
            "horizon_minutes": horizon_minutes,
        }
        return self._get("/predictions", chosen)

    def predictions_frame(
        self, entity_ids: Sequence[str], *, family: str = "snr", horizon_minutes: int | None = None
    ) -> pl.DataFrame:
        """The `items` of `predictions`: `link_id`, `horizon_minutes`, `predicted_at`, quantiles."""
        from fleetcast.client import frames  # noqa: PLC0415 - polars is slow to load

        answer = self.predictions(entity_ids, family=family, horizon_minutes=horizon_minutes)
        return frames.predictions(answer)

    def account(self) -> dict[str, Any]:
        """The account's state, entitlements and usage. Raises `ApiError`, `OSError`."""
        return self._get("/account/state", {})

    def health(self, subsystem: str | None = None) -> bool:
        """True while the service, or its `telemetry`, `topology` or `predictions`, is well."""
        try:
            answer = self._get("/health" if subsystem is None else f"/health/{subsystem}", {})
        except ApiError as error:
            if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
                return False
            raise
        return bool(answer["status"] == "ok")

    def _get(
        self, path: str, parameters: Mapping[str, Any], *, has: tuple[str, type] | None = None
    ) -> dict[str, Any]:
        given = {
            name: time_text(value) if isinstance(value, datetime) else value
            for name, value in parameters.items()
            if value is not None
        }
        query = urlencode(given, doseq=True)
        target = f"{path}?{query}" if query else path
        return self._connection.exchange("GET", target, None, has=has)
