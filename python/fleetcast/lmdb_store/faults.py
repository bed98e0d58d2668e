"""Faults of LMDB, in our words: its own name its functions and numbers."""

from __future__ import annotations

import os

import lmdb

from fleetcast.errors import reason
from fleetcast.lmdb_store.environment import DATA_FILE

_DAMAGED = (
    lmdb.CorruptedError,
    lmdb.InvalidError,
    lmdb.PageNotFoundError,
    lmdb.PanicError,
    lmdb.ProblemError,
    lmdb.VersionMismatchError,
)


def problem(error: lmdb.Error | OSError) -> str:
    """Why an environment cannot be used now."""
    if isinstance(error, OSError):
        return reason(error)
    if error.code > 0:  # a number of the system
        return os.strerror(error.code)
    if isinstance(error, _DAMAGED):
        return f"{DATA_FILE} is damaged, or of another program"
    if isinstance(error, lmdb.MapFullError | lmdb.TxnFullError):
        return "it is full: try again, it has grown then"
    if isinstance(error, lmdb.ReadersFullError):
        return "too many threads read it at once: try again"
    return f"the library that keeps it gave up, as its error {error.code}"
