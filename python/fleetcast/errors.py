"""All exceptions that fleetcast raises on purpose.

Exception
├── Refused             the contract refuses the request: code and context (from the engine)
│   ├── InvalidKey      the key that was sent is not valid: the lockout counts this
│   └── TenantFull      a batch would take its tenant past a bound on names
├── StoreError          the machine or the files failed (from the engine)
│   ├── StoreMissing
│   ├── StoreExists
│   ├── StoreDamaged
│   ├── StoreFull
│   ├── StoreUnavailable
│   │   └── StoreUnreachable  the remote store is away or did not answer; the handle stays usable
│   └── RecordsUnavailable    small records cannot be read or written now
└── OperatorError       an operator can mend it: the message is one line
    └── SettingsError   every wrong setting, a line each
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast._core import (
    InvalidKey as InvalidKey,
    RecordsUnavailable as RecordsUnavailable,
    Refused as Refused,
    StoreDamaged as StoreDamaged,
    StoreError as StoreError,
    StoreExists as StoreExists,
    StoreFull as StoreFull,
    StoreMissing as StoreMissing,
    StoreUnavailable as StoreUnavailable,
    StoreUnreachable as StoreUnreachable,
    TenantFull as TenantFull,
)

if TYPE_CHECKING:
    from pathlib import Path


class OperatorError(Exception):
    """A problem that an operator can mend. The message is one line that says what to do."""


class SettingsError(OperatorError):
    """Settings that are unknown or out of range; `problems` has one line for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def reason(error: Exception, named: Path | None = None) -> str:
    """Returns the text of an error, without the names and numbers that Python adds.

    The text begins with the file's name, unless the message already names it as `named`. Example:
    `acme.key: Permission denied` instead of `[Errno 13] Permission denied: 'acme.key'`.
    """
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is no {error.encoding.upper()}"
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    is_named = error.filename is None or str(error.filename) == str(named)
    return error.strerror if is_named else f"{error.filename}: {error.strerror}"


def refused(code: str, **context: object) -> Refused:
    """Makes a refusal in the words of the contract: `code`, and the extra fields of its body.

    Example: `raise refused("not_found")`.
    """
    return Refused(code, context)
