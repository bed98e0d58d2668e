"""All exceptions that fleetcast raises on purpose.

Exception
├── Refused             the contract refuses the request: code and context (from the engine)
│   ├── InvalidKey      a key was sent and is no good: the kind that the lockout counts
│   └── TenantFull      a batch would take its tenant past a bound on names
├── StoreError          the machine or the files failed (from the engine)
│   ├── StoreMissing
│   ├── StoreExists
│   ├── StoreDamaged
│   ├── StoreFull
│   ├── StoreUnavailable
│   │   └── StoreUnreachable  what keeps the store is away or did not answer; the handle goes on
│   └── RecordsUnavailable    small records cannot be read or written now
└── OperatorError       a person at the command line can mend it: one clear line
    └── SettingsError   all wrong settings at once, a line each
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast._core import (
    InvalidKey,
    RecordsUnavailable,
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

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "InvalidKey",
    "OperatorError",
    "RecordsUnavailable",
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
    "reason",
    "refused",
]


class OperatorError(Exception):
    """Something an operator can mend; the message is one line that says what to do."""


class SettingsError(OperatorError):
    """Settings that are unknown or out of range; `problems` holds one line for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def reason(error: Exception, named: Path | None = None) -> str:
    """The text of an error, without the names and numbers that Python adds.

    It names the file, unless that is `named` in the message already. Example:
    `acme.key: Permission denied` instead of `[Errno 13] Permission denied: 'acme.key'`.
    """
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is no {error.encoding.upper()}"
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    is_named = error.filename is None or str(error.filename) == str(named)
    return error.strerror if is_named else f"{error.filename}: {error.strerror}"


def refused(code: str, **context: object) -> Refused:
    """A refusal in the words of the contract: `code`, and the extra fields of its body."""
    return Refused(code, context)
