"""Who a request counts for, and what each holds of its worker (N6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.http.connection import Connection
    from fleetcast.shares import Share

_KEYS_MAX = 65_536


class Holding:
    """What one owner holds of a share; `freed` is called when it has given all of it back."""

    def __init__(
        self, share: Share, owner: str, amount: int, freed: Callable[[], None] | None = None
    ) -> None:
        self._share = share
        self._owner = owner
        self._amount = amount
        self._freed = freed

    def give(self, amount: int) -> None:
        """Gives back a part, or all where that is less."""
        amount = min(amount, self._amount)
        if amount == 0:
            return
        self._amount -= amount
        self._share.give(self._owner, amount)
        if self._amount == 0 and self._freed is not None:
            self._freed()

    def give_all(self) -> None:
        """Gives back the rest."""
        self.give(self._amount)

    def move(self, owner: str) -> None:
        """Has another owner hold it."""
        self._share.add(owner, self._amount)
        self._share.give(self._owner, self._amount)
        self._owner = owner


class Owners:
    """Accounts of keys that the application has accepted, so that requests count for them early.

    A key that nobody has accepted yet says nothing: what comes with it counts for the address. Else
    anybody could fill another's share with its key id, or get a turn for each key they invent.
    What is remembered decides about shares alone; each request is decided on anew.
    """

    def __init__(self) -> None:
        self._accounts: dict[int, str] = {}

    def of(self, connection: Connection) -> str:
        """The account of a whole head's key, or the address that it came from."""
        account = self._accounts.get(_key(connection))
        return connection.address if account is None else account

    def learn(self, connection: Connection, account_id: str) -> bool:
        """Whether it is news that the connection's key is the account's."""
        key = _key(connection)
        if self._accounts.get(key) == account_id:
            return False
        if len(self._accounts) >= _KEYS_MAX:
            self._accounts.clear()
        self._accounts[key] = account_id
        return True


def _key(connection: Connection) -> int:
    """The hash of a key's text, which is to stay in no memory that outlives its request."""
    assert connection.head is not None  # noqa: S101 - only requests with a whole head count
    return hash(connection.head.told.fields.get("HTTP_X_API_KEY"))
