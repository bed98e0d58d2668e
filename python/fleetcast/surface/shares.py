"""Shares: how much of something one owner may hold, so that nobody can take all of it.

An owner is whoever a bound is counted for: an account, or an address where no key is known yet. One
rule serves all that is shared (threads, calls, requests, bytes): an owner may hold as much as stays
free for the others. One alone gets half, a second one half of what is left, and so on; who holds
nothing gets what is left.
"""

from __future__ import annotations

import threading

_KEYS_MAX = 65_536


class Share:
    """Counts an amount by owner against a bound. Safe to share between threads."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}
        self._total = 0
        self._lock = threading.Lock()

    def take(self, owner: str, amount: int, bound: int) -> bool:
        """Takes `amount` of `bound`, or nothing where it is more than the owner's share.

        The only thing under way passes, however large it is.
        """
        with self._lock:
            held = self._held.get(owner, 0)
            left = bound - self._total - amount
            if self._total and left < (held + amount if held else 0):
                return False
            self._held[owner] = held + amount
            self._total += amount
            return True

    def add(self, owner: str, amount: int) -> None:
        """Counts what is there already, whatever the owner holds."""
        with self._lock:
            self._held[owner] = self._held.get(owner, 0) + amount
            self._total += amount

    def held(self, owner: str) -> int:
        """Amount that an owner holds now."""
        return self._held.get(owner, 0)

    @property
    def total(self) -> int:
        """Amount that all hold together."""
        return self._total

    def give(self, owner: str, amount: int) -> None:
        """Gives back what was taken."""
        with self._lock:
            self._total -= amount
            held = self._held.get(owner, 0) - amount
            if held:
                self._held[owner] = held
            else:  # nothing is kept of those who hold nothing
                self._held.pop(owner, None)


class KeyOwners:
    """Accounts of accepted keys, so that what comes with one counts for its account early.

    A key that nobody has accepted yet says nothing: what comes with it counts for its address. Else
    anybody could fill another's share with its key id, or get a turn for each key they invent.
    What is remembered decides about shares alone; each request is decided on anew. Of the text of
    a key only the hash is kept. Safe to share between threads.
    """

    def __init__(self) -> None:
        self._accounts: dict[int, str] = {}

    def of(self, key: str | None, address: str) -> str:
        """The account of a key, or the address that it came from."""
        return self._accounts.get(hash(key), address)

    def learn(self, key: str | None, account_id: str) -> bool:
        """Notes that a key is the account's; true where that is news."""
        if self._accounts.get(hash(key)) == account_id:
            return False
        if len(self._accounts) >= _KEYS_MAX:
            self._accounts.clear()
        self._accounts[hash(key)] = account_id
        return True
