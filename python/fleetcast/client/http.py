"""`Client`: writes and reads over HTTP, as JSON or as polars frames."""

from __future__ import annotations

import http.client
import json
import ssl
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from fleetcast.client.records import Record

Time = datetime | str


class ApiError(Exception):
    """An answer that is not a success: its status, its body, and when to come back if it says."""

    def __init__(self, status: int, body: Any, retry_after_seconds: int | None) -> None:  # noqa: ANN401
        super().__init__(f"{status} {json.dumps(body)[:500]}")
        self.status = status
        self.body = body
        self.retry_after_seconds = retry_after_seconds

    @property
    def code(self) -> str | None:
        """The `error` of the body, `None` where it has none (a `detail` list)."""
        return self.body.get("error") if isinstance(self.body, dict) else None


class Client:
    """A key's view of the service at `base_url`. One connection; not to be shared by threads."""

    def __init__(self, base_url: str, key: str, *, timeout_seconds: float = 30.0) -> None:
        place = urlsplit(base_url)
        host = place.hostname or ""
        self._prefix = place.path.rstrip("/")
        self._connection = (
            http.client.HTTPSConnection(
                host, place.port, timeout=timeout_seconds, context=ssl.create_default_context()
            )
            if place.scheme == "https"
            else http.client.HTTPConnection(host, place.port, timeout=timeout_seconds)
        )
        self._headers = {"x-api-key": key}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def write(self, records: Iterable[Record]) -> dict[str, Any]:
        """Writes one batch and gives the acknowledgment.

        Raises `ApiError`. Raises `OSError` where the connection is lost: then nobody knows whether
        the batch was stored, and it must be looked up before it is sent again.
        """
        body = json.dumps(list(records), allow_nan=False, default=_encode_time).encode()
        return self._exchange("POST", "/telemetry", body)

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
        return self._get("/topology", chosen)

    def topology_frame(
        self,
        measurement: str,
        *,
        as_of: Time | None = None,
        freshness_seconds: int | None = None,
    ) -> pl.DataFrame:
        """As `topology`: `entity_id`, `observed_at`, `tags` (JSON), then a column per field."""
        import polars as pl  # noqa: PLC0415  slow to load, and only frames need it

        answer = self.topology(measurement, as_of=as_of, freshness_seconds=freshness_seconds)
        entities = answer["entities"]
        names = sorted({name for entity in entities for name in entity["fields"]})
        columns: dict[str, Any] = {
            "entity_id": pl.Series([e["entity_id"] for e in entities], dtype=pl.String),
            "observed_at": _times(e["observed_at"] for e in entities),
            "tags": pl.Series([json.dumps(e["tags"]) for e in entities], dtype=pl.String),
        }
        columns |= {name: [entity["fields"].get(name) for entity in entities] for name in names}
        return pl.DataFrame(columns)

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
        **chosen: Any,  # noqa: ANN401  as `series`
    ) -> pl.DataFrame:
        """As `series`, all pages: `entity_id`, `time`, then a column per channel."""
        import polars as pl  # noqa: PLC0415  see above

        frames = []
        page_start: Time | None = start
        while page_start is not None:
            page = self.series(entity_ids, start=page_start, **chosen)
            frames += [
                pl.DataFrame(
                    {
                        "entity_id": pl.Series(
                            [one["entity_id"]] * len(one["times"]), dtype=pl.String
                        ),
                        "time": _times(one["times"]),
                        **{
                            name: pl.Series(values, dtype=pl.Float64, strict=False)
                            for name, values in one["channels"].items()
                        },
                    }
                )
                for one in page["series"]
            ]
            page_start = page.get("next_start") if page.get("truncated") else None
        return pl.concat(frames, how="diagonal") if frames else pl.DataFrame()

    def health(self, subsystem: str | None = None) -> bool:
        """Whether the service, or its `telemetry`, `topology` or `predictions`, is well."""
        try:
            answer = self._get("/health" if subsystem is None else f"/health/{subsystem}", {})
        except ApiError as error:
            if error.status == http.HTTPStatus.SERVICE_UNAVAILABLE:
                return False
            raise
        return bool(answer["status"] == "ok")

    def _get(self, path: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        given = {
            name: _text(value) if isinstance(value, datetime) else value
            for name, value in parameters.items()
            if value is not None
        }
        query = urlencode(given, doseq=True)
        return self._exchange("GET", f"{path}?{query}" if query else path, None)

    def _exchange(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            self._connection.request(method, self._prefix + path, body, headers)
            response = self._connection.getresponse()
            content = response.read()
        except BaseException:
            # Half an exchange must not be taken for the beginning of the next.
            self._connection.close()
            raise
        try:
            document: dict[str, Any] = json.loads(content)
        except ValueError:
            document = {"error": content.decode(errors="replace")}
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            retry_after = response.headers.get("Retry-After", "")
            seconds = int(retry_after) if retry_after.isdecimal() else None
            raise ApiError(response.status, document, seconds)
        return document


def _times(texts: Iterable[str]) -> pl.Series:
    import polars as pl  # noqa: PLC0415  see above

    return pl.Series(list(texts), dtype=pl.String).str.to_datetime(time_unit="ns", time_zone="UTC")


def _text(time: datetime) -> str:
    return time.isoformat()


def _encode_time(value: object) -> str:
    if isinstance(value, datetime):
        return _text(value)
    message = f"a {type(value).__name__} cannot be written as telemetry"
    raise TypeError(message)
