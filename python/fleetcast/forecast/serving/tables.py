"""The tables of the prediction store as one transaction sees them, and their quotas.

Keys of a tenant's records begin with its account and `/`. Keys of open scores begin with the
instant from which they can be scored, 8 bytes, and then the account. The table `shares` holds the
bytes in use. The bytes of a whole table are under the table's name. The bytes of a tenant are under
that name, `/` and the account. Example: `values/a1` has the bytes of account `a1` in the table
`values`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.engine import RecentForecasts
from fleetcast.record_store import count_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fleetcast.engine import ForecastQuestion, Plane, RecordsTransaction
    from fleetcast.forecast.serving.clock import Clock

TABLES = ("rollouts", "leases", "cooldowns", "values", "pending", "series", "shares")
TENANT_TABLES = ("leases", "cooldowns", "values", "pending", "series")

FENCE = b"fence"
_DUE_BYTES = 8
_COUNT_BYTES = 8


class Quota(NamedTuple):
    """Bytes of keys and values in a table: the bounds of one tenant and of all tenants."""

    tenant_bytes_max: int
    bytes_max: int


QUOTAS: Mapping[str, Quota] = {
    "cooldowns": Quota(16 << 20, 256 << 20),
    "values": Quota(256 << 20, 2 << 30),  # a forecast at all horizons takes 700 bytes
    "pending": Quota(384 << 20, 3 << 29),  # a forecast at one horizon takes 85 bytes
    "series": Quota(256 << 20, 2 << 30),  # a state takes 2,400 bytes a day
}
"""Leases have no quota: they last for a batch, and a request has one batch."""


class Records:
    """The tables in one transaction. Keys and values are bytes."""

    def __init__(self, view: RecordsTransaction, quotas: Mapping[str, Quota]) -> None:
        self._view = view
        self._quotas = quotas
        self._used: dict[bytes, int] = {}
        """Bytes in use, by key of the table `shares`, as read in this transaction."""

    def get(self, table: str, key: bytes) -> bytes | None:
        """Returns one value."""
        return self._view.get(table, key)

    def load(self, table: str, keys: Sequence[bytes]) -> None:
        """Announces the values that will be read."""
        self._view.load(table, keys)

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Adds or replaces a record without a quota."""
        self._view.put(table, key, value)

    def keep(self, table: str, key: bytes, value: bytes) -> bool:
        """Adds or replaces a record under a quota; returns false if it does not fit."""
        quota, (of_tenant, of_all) = self._quotas[table], _counts(table, key)
        change = len(key) + len(value) - self._size(table, key)
        if change > 0 and (
            self._bytes(of_tenant) + change > quota.tenant_bytes_max
            or self._bytes(of_all) + change > quota.bytes_max
        ):
            return False
        self.put(table, key, value)
        self._count(of_tenant, change)
        self._count(of_all, change)
        return True

    def delete(self, table: str, key: bytes) -> None:
        """Deletes a record, if it exists."""
        if table in self._quotas:
            size = self._size(table, key)
            for count in _counts(table, key):
                self._count(count, -size)
        self._view.delete(table, key)

    def recent(
        self, plane: Plane, account_id: str, question: ForecastQuestion, fresh_ns: int, clock: Clock
    ) -> RecentForecasts:
        """The forecasts that hold now, without changes of this transaction. Raises `StoreError`."""
        return RecentForecasts(
            self._view,
            plane,
            account_id,
            question,
            fresh_ns=fresh_ns,
            now_ns=clock.now_ns(),
            stamp=clock.stamp(),
        )

    def under(self, table: str, prefix: bytes, first: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin with a prefix, ascending from `first` on, and their values."""
        return self._view.under(table, prefix, first)

    def count(self, table: str) -> int:
        """Number of records of a table."""
        return self._view.count(table)

    def next_fence(self) -> int:
        """Returns a number that no earlier lease has."""
        return count_up(self._view, FENCE)

    def settle(self) -> None:
        """Stores this transaction's changes of the bytes in use."""
        for key, used in self._used.items():
            if used:
                self.put("shares", key, used.to_bytes(_COUNT_BYTES, "big"))
            else:
                self.delete("shares", key)

    def _size(self, table: str, key: bytes) -> int:
        before = self._view.get(table, key)
        return 0 if before is None else len(key) + len(before)

    def _bytes(self, count: bytes) -> int:
        if count not in self._used:
            self._used[count] = int.from_bytes(self.get("shares", count) or b"", "big")
        return self._used[count]

    def _count(self, count: bytes, change: int) -> None:
        self._used[count] = self._bytes(count) + change


def owner(table: str, key: bytes) -> bytes:
    """The account that a record belongs to."""
    return key[_DUE_BYTES if table == "pending" else 0 :].partition(b"/")[0]


def family_of(key: bytes) -> str:
    """The family of an open score."""
    return key[_DUE_BYTES:].split(b"/", 2)[1].decode()


def due(time_ns: int) -> bytes:
    """Prefix of the keys of open scores that can be scored from an instant on."""
    return time_ns.to_bytes(_DUE_BYTES, "big")


def rollout_key(family: str, rollout_id: str | None = None) -> bytes:
    """Key of one rollout of a family, or of the rollout in force."""
    return f"{family}=".encode() if rollout_id is None else f"{family}/{rollout_id}".encode()


def encode(document: object) -> bytes:
    """A record in compact JSON."""
    return json.dumps(document, separators=(",", ":")).encode()


def _counts(table: str, key: bytes) -> tuple[bytes, bytes]:
    """Keys of the bytes in use that count a record: its tenant's, and the whole table's."""
    name = table.encode()
    return name + b"/" + owner(table, key), name
