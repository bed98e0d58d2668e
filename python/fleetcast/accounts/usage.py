"""Requests per account over all runs of the service.

The surfaces count in shared memory, which ends with the run. Once a second the supervisor adds to
the control store all requests since. A record remembers how much of the present run it holds
already, so its sum and the shared memory together are exact at any moment, and only a kill -9 of
the supervisor loses what the last second brought.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleetcast.engine import UsageRecord

if TYPE_CHECKING:
    from fleetcast.accounts.store import ControlStore

_NOTHING = UsageRecord(requests=0, run="", counted=0)


class Counted(Protocol):
    """Requests of the present run."""

    def of(self, account_id: str) -> int:
        """Requests of one account."""

    def all(self) -> dict[str, int]:
        """Requests of all accounts that sent any."""


class Usage:
    """The usage of all accounts. `counted` knows the requests of the run named `run`.

    When many nodes serve, each adds to records of its own `node`.
    """

    def __init__(
        self, store: ControlStore, counted: Counted, run: str, node: str | None = None
    ) -> None:
        self._store = store
        self._counted = counted
        self._run = run
        self._node = node
        self._flushed: dict[str, int] = {}

    def requests_total(self, account_id: str) -> int:
        """Requests with a valid key since the account was made, on all nodes.

        Those of other nodes are as of their last second. Raises `ControlStoreUnavailable`.
        """
        with self._store.read() as view:
            records = UsageRecord.all(view, account_id)
        key = self._key(account_id)
        records[key] = self._added(records.get(key), self._counted.of(account_id))
        return sum(record.requests for record in records.values())

    def flush(self) -> None:
        """Makes new counts durable; costs nothing where there are none.

        Raises `ControlStoreUnavailable`; nothing is lost then.
        """
        counted = self._counted.all()
        changed = [name for name, count in counted.items() if self._flushed.get(name) != count]
        if not changed:
            return
        with self._store.write() as view:
            for account_id in changed:
                key = self._key(account_id)
                self._added(UsageRecord.get(view, key), counted[account_id]).put(view, key)
        self._flushed = counted

    def _key(self, account_id: str) -> str:
        """Key of the record that is added to."""
        return account_id if self._node is None else f"{account_id}/{self._node}"

    def _added(self, record: UsageRecord | None, counted: int) -> UsageRecord:
        record = record or _NOTHING
        held = record.counted if record.run == self._run else 0
        requests = record.requests + counted - held
        return UsageRecord(requests=requests, run=self._run, counted=counted)
