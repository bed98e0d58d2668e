"""Records of the control store whose changes are noted in the audit log."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from fleetcast.accounts.store import ControlStore


Audit = Callable[..., None]
"""Notes a change in the audit log: an event, and details by name, never the text of a key."""


def unaudited(event: str, **details: object) -> None:
    """Does not note the change."""


class AuditedRecords:
    """Records of one kind. `clock` gives seconds since 1970."""

    PEPPER: ClassVar[str]
    """Label of the secret under which texts of the records are hashed."""

    def __init__(
        self,
        store: ControlStore,
        clock: Callable[[], float] = time.time,
        audit: Audit = unaudited,
    ) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit

    @cached_property
    def _pepper(self) -> bytes:
        return self._store.secret(self.PEPPER)

    def now(self) -> int:
        """Seconds since 1970, by the clock that ends the records."""
        return int(self._clock())
