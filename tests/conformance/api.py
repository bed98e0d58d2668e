"""The running service as its clients see it: tenants, keys, records, and what came back."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.message import Message
from typing import TYPE_CHECKING

from fleetcast.accounts import Keys
from fleetcast.config.sections import POSTGRESQL
from fleetcast.engine import encode_records
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.erasing import erase
from fleetcast.installation.opening import opened
from tests.http.client import Client, Response
from tests.key_text import id_of
from tests.service.service import ALL_SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from fleetcast.accounts import Tenants
    from tests.service.service import Answer, Service

# An hour that began at least three hours ago: every window of every interval starts here.
HOUR_S = int(time.time()) // 3600 * 3600 - 10_800
DAY_S = 86_400
HEARD_SECONDS = 2.5
"""A second, and what a loaded machine may add.

No event tells that every process has heard: each asks the database twice a second and notes no
answer there, PostgreSQL keeps only the last statement of a session, and not every process that
asks has an address for metrics.
"""
INTERVALS_S = {"15s": 15, "30s": 30, "1m": 60, "5m": 300, "15m": 900, "1h": 3600}
_ZONE = dt.UTC


def at(seconds: float, base_s: int = HOUR_S) -> str:
    """`base_s + seconds` as the service writes it; milliseconds at most."""
    milliseconds = round(seconds * 1000)
    moment = dt.datetime.fromtimestamp(base_s + milliseconds // 1000, _ZONE)
    fraction = f".{milliseconds % 1000:03}" if milliseconds % 1000 else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def record(time_text: str, entity: str = "e", measurement: str = "link", **fields) -> dict:
    return {
        "measurement": measurement,
        "time": time_text,
        "tags": {"entity_id": entity},
        "fields": fields or {"snr_db": 1.0},
    }


def refusal(answer: Answer) -> tuple[int, object]:
    """Status and body of an answer that must not be prose."""
    assert answer.headers["Content-Type"] == "application/json"
    return answer.status, answer.json


def faults(answer: Answer) -> list[tuple[str, list]]:
    """Type and place of every item of a 422 `detail` list, whose shape is C1."""
    assert answer.status == 422, answer.body
    assert list(answer.json) == ["detail"]
    for item in answer.json["detail"]:
        assert set(item) == {"type", "loc", "msg"}
        assert isinstance(item["msg"], str)
        assert item["msg"]
    return [(item["type"], item["loc"]) for item in answer.json["detail"]]


@dataclass(frozen=True)
class Tenant:
    """One tenant, with a key for everything."""

    service: Service
    name: str
    plane: Path
    key: str

    def at_each_worker(self) -> Iterator[Tenant]:
        """The tenant as a client of one worker after the other."""
        yield from (replace(self, service=one) for one in self.service.each_worker())

    def post(self, records: object, **options: object) -> Answer:
        return self.service.post(records, **{"key": self.key, **options})

    def write(self, *records: dict) -> dict:
        """Writes what must be accepted whole."""
        answer = self.post(list(records))
        assert answer.status == 202, answer.body
        assert answer.json["accepted_count"] == len(records)
        return answer.json

    def get(self, path: str, **parameters: object) -> Answer:
        return self.service.get(path, **{"key": self.key, **parameters})

    def topology(self, **parameters: object) -> Answer:
        """An hour from `HOUR_S` on, unless told otherwise."""
        return self.get(
            "/topology", **{"as_of_utc": at(3600), "freshness_seconds": 3600, **parameters}
        )

    def entities(self, **parameters: object) -> list[dict]:
        answer = self.topology(**parameters)
        assert answer.status == 200, answer.body
        return answer.json["entities"]

    def series(self, entity: str | Sequence[str] = "e", **parameters: object) -> Answer:
        """An hour of `link` from `HOUR_S` on, unless told otherwise; `None` leaves one out."""
        defaults = {"start": at(0), "end": at(3600), "measurement": "link"}
        chosen = {**defaults, **parameters}
        given = {name: value for name, value in chosen.items() if value is not None}
        return self.get("/topology/series", entity_id=entity, **given)

    def rows(self, entity: str = "e", **parameters: object) -> list[tuple]:
        """(time, {channel: value}) of one entity."""
        answer = self.series(entity, **parameters)
        assert answer.status == 200, answer.body
        (one,) = answer.json["series"]
        channels = one["channels"]
        assert one["point_count"] == len(one["times"])
        assert all(len(values) == len(one["times"]) for values in channels.values())
        return [
            (moment, {name: values[row] for name, values in channels.items()})
            for row, moment in enumerate(one["times"])
        ]


class _Heard:
    """Tenants whose changes all nodes have heard of on return, as they must within a second."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self._tenants, name)

        def made(*arguments: object, **options: object) -> object:
            result = method(*arguments, **options)
            if name == "change":
                time.sleep(HEARD_SECONDS)
            return result

        return made


class Accounts:
    """Tenants and keys of a data directory, made beside the running service."""

    def __init__(self, service: Service, data: Path) -> None:
        self.service = service
        self.data = data
        self._numbers = itertools.count()
        self._opened = opened(DataDirectory(data), os.environ)
        self._installation = self._opened.__enter__()
        self.store = self._installation.store
        self.is_shared = self._installation.settings.store.backend == POSTGRESQL
        tenants = self._installation.tenants
        self.tenants = _Heard(tenants) if self.is_shared else tenants
        self.engine = self._installation.engine
        self.settings = self._installation.settings

    def close(self) -> None:
        self._opened.__exit__(None, None, None)

    def tenant(self, name: str | None = None, **attributes: object) -> Tenant:
        name = name or f"tenant-{next(self._numbers)}"
        created = self.tenants.create(name, **attributes)
        plane = self.data / "planes" / created.account_id
        return Tenant(self.service, name, plane, self.key(name))

    def key(
        self,
        tenant: str,
        scopes: Sequence[str] = ALL_SCOPES,
        environment: str = "sandbox",
        *,
        age_seconds: float = 0.0,
        lifetime_seconds: int | None = None,
    ) -> str:
        keys = self._installation.keys
        if age_seconds:
            keys = Keys(self.store, lambda: time.time() - age_seconds)
        issued = keys.create(
            tenant, scopes=scopes, environment=environment, lifetime_seconds=lifetime_seconds
        )
        return str(issued.text)

    def write_ahead(self, tenant: Tenant, *records: dict, seconds: float) -> None:
        """Writes as a process of this machine does while its clock is ahead."""
        engine, account_id = self.engine, tenant.plane.name
        now_ns = time.time_ns() + round(seconds * 1e9)
        engine.plane(account_id, tenant.name).write_json(encode_records(records), now_ns=now_ns)
        engine.release(account_id)

    def delete(self, tenant: Tenant) -> None:
        self.forget(tenant)
        self.be_heard()

    def forget(self, tenant: Tenant) -> None:
        """Deletes a tenant that nobody asks for again."""
        erase(DataDirectory(self.data), self._installation, tenant.name)

    def revoke(self, key: str) -> None:
        self._installation.keys.revoke(id_of(key))
        self.be_heard()

    def be_heard(self) -> None:
        """Returns when all nodes have heard of every change, as they must within a second."""
        if self.is_shared:
            time.sleep(HEARD_SECONDS)

    @contextmanager
    def away(self, tenant: Tenant) -> Iterator[None]:
        """Takes a tenant's plane away until the block ends; for good where it has no files."""
        if self.is_shared:
            self.engine.destroy_plane(tenant.plane.name)
            yield
            return
        aside = tenant.plane.with_suffix(".away")
        tenant.plane.rename(aside)
        yield
        aside.rename(tenant.plane)


def accounts_of(service: Service, data: Path) -> Iterator[Accounts]:
    created = Accounts(service, data)
    try:
        yield created
    finally:
        created.close()


class RawClient(Client):
    """Says exactly the bytes it is told to. Names of header fields have no case."""

    def response(self, *, head_only: bool = False) -> Response:
        answer = super().response(head_only=head_only)
        fields = Message()
        for name, value in answer.headers.items():
            fields[name] = value
        return Response(answer.status, fields, answer.body)


def raw(service: Service) -> RawClient:
    return RawClient(int(service.address.rsplit(":", 1)[1]))


GETS = [
    *("/health", "/health/telemetry", "/health/topology", "/health/predictions"),
    *("/topology", "/account/state", f"/topology/series?entity_id=e&start={at(0)}&end={at(60)}"),
]
"""Each path with a good answer to GET."""


def untimed(value: object) -> str | None:
    """Id of a parameter without the instants in it, which another process may count otherwise."""
    return value.partition("?")[0] if isinstance(value, str) else None


def head(method: str, path: str, key: str | None, *fields: str) -> bytes:
    """A request head of exactly these words; `key=None` sends none."""
    lines = [f"{method} {path} HTTP/1.1", "Host: a", *fields]
    if key is not None:
        lines.append(f"x-api-key: {key}")
    return "\r\n".join([*lines, "", ""]).encode()


def ask(
    tenant: Tenant,
    method: str,
    path: str,
    *fields: str,
    body: bytes = b"",
    key: str | None = "",
) -> Response:
    """One request of exactly these bytes; the key is the tenant's own unless another is given."""
    with raw(tenant.service) as client:
        text = head(method, path, tenant.key if key == "" else key, *fields)
        return client.send(text + body).response(head_only=method == "HEAD")
