"""Requests per account over all runs of the service.

The surfaces count requests in shared memory, which ends with the run. Once a second the maintenance
process adds the new requests to the control store. A record remembers how much of the present run
it already includes, so the record and the shared memory together are exact at any moment. Only a
kill -9 of the service loses counts: those of the last second.

Example: a record with 900 requests, 40 of them of this run, and 45 in memory make 905.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.engine import UsageRecord

if TYPE_CHECKING:
    from fleetcast.accounts.store import ControlStore
    from fleetcast.metrics import AccountRequests

_NOTHING = UsageRecord(requests=0, run="", counted=0)


class Usage:
    """The usage of all accounts. `counted` knows the requests of the run named `run`.

    If many nodes serve, each node adds to its own records, named by `node`.
    """

    def __init__(
        self, store: ControlStore, counted: AccountRequests, run: str, node: str | None = None
    ) -> None:
        self._store = store
        self._counted = counted
        self._run = run
        self._node = node
        self._flushed: dict[str, int] = {}

    def requests_total(self, account_id: str) -> int:
        """Returns the requests with a valid key since the account was made, on all nodes.

        Requests on other nodes count up to the last second. Raises `ControlStoreUnavailable`.
        """
        with self._store.read() as view:
            records = UsageRecord.all(view, account_id)
        key = self._key(account_id)
        records[key] = self._added(records.get(key), self._counted.of(account_id))
        return sum(record.requests for record in records.values())

    def flush(self) -> None:
        """Makes new counts durable; does no work if no count has changed.

        Raises `ControlStoreUnavailable`; no count is lost then.
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
        """Key of the record that this node adds to."""
        return account_id if self._node is None else f"{account_id}/{self._node}"

    def _added(self, record: UsageRecord | None, counted: int) -> UsageRecord:
        record = record or _NOTHING
        held = record.counted if record.run == self._run else 0
        requests = record.requests + counted - held
        return UsageRecord(requests=requests, run=self._run, counted=counted)
