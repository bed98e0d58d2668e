"""Records of the control store whose changes are noted in the audit log."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.accounts.store import ControlStore


class Audit(Protocol):
    """Notes a change in the audit log."""

    def __call__(self, event: str, **details: object) -> None:
        """Callers never pass the text of a key."""


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
