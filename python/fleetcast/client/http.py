"""`Client`: writes and reads over HTTP, as JSON or as polars frames."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

from fleetcast.client.batches import bodies, merged, name_the_records
from fleetcast.client.connection import ApiError, RestingConnection
from fleetcast.client.reconcile import holds, probes
from fleetcast.client.times import time_ns, time_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from fleetcast.client.records import Record

Time = datetime | int | str
"""A `datetime`, nanoseconds since 1970, or ISO 8601 text. A time without a zone is UTC."""


class Client:
    """Writes and reads with one key at `base_url`, over one connection.

    Not safe to share between threads.

    `base_url` begins with `http://` or `https://`. `authority` is the certificate of a private
    authority that signs the certificate of the service, in PEM or as its file. Raises `ValueError`
    for another address. A time is a `datetime`, nanoseconds since 1970, or ISO 8601 text; without a
    zone it is UTC.

    The service closes a connection that is idle for a minute; the next request opens another.

    Example:
        with Client("http://127.0.0.1:8080", key) as client:
            tags, fields = {"entity_id": "l1"}, {"snr_db": 12.5}
            client.write([{"measurement": "link", "time": now, "tags": tags, "fields": fields}])
            print(client.topology_frame("link"))
    """

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        timeout_seconds: float = 30.0,
        authority: bytes | Path | None = None,
    ) -> None:
        self._base_url = base_url
        self._connection = RestingConnection(base_url, key, timeout_seconds, authority)

    def __repr__(self) -> str:
        return f"Client({self._base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def write(self, records: Iterable[Record]) -> dict[str, Any]:
        """Writes records and returns the acknowledgment, such as `{"accepted_count": 2, …}`.

        Up to 1,000 records of 1 MiB are one batch, which is stored whole or not at all. More
        records go as several batches, one after the other. `rejected_records` in the answer are the
        records that were rejected one by one, and `rejected_indices` their indices, or `None`.

        Raises `KeyError`, `TypeError` or `ValueError` if a record cannot be written as JSON; then
        no record was sent. Raises `ApiError` if the answer is not an acknowledgment, such as an
        error of the service or of a proxy. Raises `OSError` if the connection is lost. The batch
        may be stored after `OSError`, and after an `ApiError` whose `write_outcome` is `unknown`:
        ask `was_stored` before you send the batch again. Notes of the errors name the records, and
        say how many records of earlier batches are stored.
        """
        taken = list(records)
        batches, answers = bodies(taken), []
        for batch in batches:
            try:
                answers.append(
                    self._connection.exchange(
                        "POST", "/telemetry", batch.content, has=("accepted_count", int)
                    )
                )
            except (ApiError, OSError) as error:
                if isinstance(error, ApiError):
                    name_the_records(error, batch.first, taken)
                if batch.first:
                    error.add_note(f"the batches of the first {batch.first} records are stored")
                raise
        return merged(batches, answers, taken)

    def was_stored(self, records: Iterable[Record]) -> bool:
        """Returns true if a batch is stored of which `write` could not say so.

        Give the whole batch as it was sent, of at most 1,000 records. Ask only when the service has
        given up the write: a write that is still under way looks as if it was not stored. In
        asynchronous mode a batch can be seen only after its flush. Up to three records are looked
        up, with one request each.

        Raises `ValueError` if no record can be looked up. A record cannot be looked up without an
        entity or a field, or with a time before 2000 or in the future. Raises `ApiError`,
        `OSError`.

        Example: `if not client.was_stored(batch.records): client.write(batch.records)`.
        """
        chosen = probes(records)
        if not chosen:
            message = "no record of the batch can be looked up"
            raise ValueError(message)
        return any(holds(self._at_instant(record), record) for record in chosen)

    def _at_instant(self, record: Record) -> list[dict[str, Any]]:
        """Returns the entities of the second that ends just after the record's time."""
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
        """Returns the newest sample of every entity. Raises `ApiError`, `OSError`.

        `as_of` reads the state at a past time. `freshness_seconds` leaves out older samples.
        """
        chosen = {
            "measurement": measurement,
            "as_of_utc": _text_of(as_of),
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
        """Returns `topology` as a frame: `entity_id`, `observed_at`, `tags`, and each field.

        `tags` is JSON text. Raises `ApiError`, `OSError`.
        """
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
        """Returns one page of channels over time. Raises `ApiError`, `OSError`.

        If the page is `truncated`, the next page starts at its `next_start`.

        Example: `series(["l1"], start=start, measurement="link", interval="1h", agg="mean")`.
        """
        chosen = {
            "entity_id": list(entity_ids),
            "start": _text_of(start),
            "end": _text_of(end),
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
        """Returns all pages of `series` as a frame: `entity_id`, `time`, and each channel."""
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
        """Returns forecasts of links (`snr`) or pools (`demand`). Raises `ApiError`, `OSError`.

        An entity that has no new forecast is in `entity_errors`. An older forecast of the entity
        may be in `items` as well.
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
        """Returns the `items` of `predictions` as a frame, with a column for each quantile."""
        from fleetcast.client import frames  # noqa: PLC0415 - polars is slow to load

        answer = self.predictions(entity_ids, family=family, horizon_minutes=horizon_minutes)
        return frames.predictions(answer)

    def scan(
        self,
        *,
        start: Time,
        end: Time,
        measurements: Sequence[str] | None = None,
        entity_ids: Sequence[str] | None = None,
        fields: Sequence[str] | None = None,
        every_row: bool = False,
        limit: int | None = None,
    ) -> pl.DataFrame:
        """Returns all stored rows with `start <= time < end`, as `Plane.scan` gives them.

        The client needs the address of the listener for other protocols (`adapters.address`), and
        the extra `frames`. `fields` leaves out rows that have none of these fields, unless
        `every_row` is true. At most the first `limit` rows are returned.

        Raises `ApiError`, `OSError`.

        Example: `Client("http://127.0.0.1:8086", key).scan(start="2026-03-01", end="2026-03-02")`.
        """
        from fleetcast.client import frames  # noqa: PLC0415 - polars is slow to load

        chosen = {
            "start": time_text(start),
            "end": time_text(end),
            "measurement": measurements,
            "entity_id": entity_ids,
            "fields": ",".join(fields) if fields is not None else None,
            "every_row": "true" if every_row else None,
            "limit": limit,
        }
        target = _target("/arrow/v1/scan", chosen)
        content = self._connection.fetch(target, "application/vnd.apache.arrow.stream")
        return frames.rows(content, limit)

    def account(self) -> dict[str, Any]:
        """Returns the account's state, entitlements and usage. Raises `ApiError`, `OSError`."""
        return self._get("/account/state", {})

    def health(self, subsystem: str | None = None) -> bool:
        """Returns true if the service is well, or its `subsystem`. Raises `ApiError`, `OSError`.

        `subsystem` is `telemetry`, `topology` or `predictions`.
        """
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
        target = _target(path, parameters)
        return self._connection.exchange("GET", target, None, has=has)


def _target(path: str, parameters: Mapping[str, Any]) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    query = urlencode(given, doseq=True)
    return f"{path}?{query}" if query else path


def _text_of(time: Time | None) -> str | None:
    return None if time is None else time_text(time)
