"""All exceptions that fleetcast raises on purpose.

Exception
├── Refused             the contract refuses the request: code and context (from the engine)
│   └── TenantFull      a batch would take its tenant past a bound on names
├── StoreError          the machine or the files failed (from the engine)
│   ├── StoreMissing
│   ├── StoreExists
│   ├── StoreDamaged
│   ├── StoreFull
│   └── StoreUnavailable
│       └── StoreUnreachable  what keeps the store is away or did not answer; the handle goes on
└── OperatorError       a person at the command line can mend it: one clear line
    └── SettingsError   all wrong settings at once, a line each
"""

from __future__ import annotations

from fleetcast._core import (
    Refused,
    StoreDamaged,
    StoreError,
    StoreExists,
    StoreFull,
    StoreMissing,
    StoreUnavailable,
    StoreUnreachable,
    TenantFull,
)

__all__ = [
    "OperatorError",
    "Refused",
    "SettingsError",
    "StoreDamaged",
    "StoreError",
    "StoreExists",
    "StoreFull",
    "StoreMissing",
    "StoreUnavailable",
    "StoreUnreachable",
    "TenantFull",
    "refused",
]


class OperatorError(Exception):
    """Something an operator can mend; the message is one line that says what to do."""


class SettingsError(OperatorError):
    """Settings that are unknown or out of range; `problems` holds one line for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def refused(code: str, **context: object) -> Refused:
    """A refusal in the words of the contract: `code`, and the extra fields of its body."""
    return Refused(code, context)
