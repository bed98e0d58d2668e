"""Faults of databases and of their client libraries, in the words of `bench`."""

from __future__ import annotations

from http.client import HTTPException

from fleetcast.client.connection import ApiError
from fleetcast.errors import OperatorError, Refused, StoreError, reason


class DatabaseFault(Exception):
    """A measured database failed; the message says how."""


def fault_of(error: Exception) -> str:
    """Describes a fault in one line, with the code that the database gave it."""
    if isinstance(error, ApiError | DatabaseFault | OperatorError | Refused | StoreError):
        return str(error).partition("\n")[0]
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, OSError) and cause.strerror:
        return f"its connection or a file failed: {reason(cause)}"
    if isinstance(error, OSError | EOFError | HTTPException):
        return "its connection ended"
    code = _code_of(error)
    library = type(error).__module__.partition(".")[0]
    return f"it failed with {code}" if code else f"its library {library} failed"


def _code_of(error: Exception) -> str | None:
    """Returns the SQLSTATE in an answer that pg8000 read, or SQLite's name of the error."""
    parts = error.args[0] if error.args else None
    if isinstance(parts, dict) and "C" in parts:
        return f"SQLSTATE {parts['C']}"
    name: str | None = getattr(error, "sqlite_errorname", None)
    return name
