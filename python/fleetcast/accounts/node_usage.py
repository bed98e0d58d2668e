"""Usage where many nodes serve an account: each adds to a record of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.accounts.usage import Usage

if TYPE_CHECKING:
    from fleetcast.accounts.store import ControlStore
    from fleetcast.accounts.usage import Counted


class NodeUsage(Usage):
    """The usage of all accounts, of which `node` counts a part."""

    def __init__(self, store: ControlStore, counted: Counted, run: str, node: str) -> None:
        super().__init__(store, counted, run)
        self._node = node

    def requests_total(self, account_id: str) -> int:
        """Requests with a valid key since the account was made, on all nodes.

        Those of other nodes are as of their last second. Raises `ControlStoreUnavailable`.
        """
        with self._store.read() as tables:
            records = tables.usages(account_id)
        own = self._added(records.pop(self._key(account_id), None), self._counted.of(account_id))
        return own.requests + sum(record.requests for record in records.values())

    def _key(self, account_id: str) -> str:
        return f"{account_id}/{self._node}"
