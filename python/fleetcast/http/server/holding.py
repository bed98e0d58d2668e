"""The share of its worker that a connection holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.surface.shares import Share


class Holding:
    """An amount that one owner holds of a share; `freed` is called once all is given back."""

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
