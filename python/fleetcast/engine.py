"""The data planes of one data directory: opened on first use, one per tenant and process.

This is the only module that reaches the compiled engine's stores. Open an `Engine` after a fork,
never before: LMDB environments do not survive one.
"""

from __future__ import annotations

import json
import shutil
import threading
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from fleetcast._core import (
    AGGREGATIONS,
    INTERVALS,
    MEASUREMENTS,
    ArrowStream,
    Plane,
    Stats,
    WriteResult,
    format_time,
    parse_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


__all__ = [
    "AGGREGATIONS",
    "INTERVALS",
    "MEASUREMENTS",
    "Aggregation",
    "ArrowStream",
    "Engine",
    "Interval",
    "Plane",
    "Stats",
    "WriteResult",
    "encode_records",
    "format_time",
    "parse_time",
    "peek",
]

Interval = Literal["15s", "30s", "1m", "5m", "15m", "1h"]
"""One of `INTERVALS`."""
Aggregation = Literal["mean", "min", "max", "last"]
"""One of `AGGREGATIONS`."""


class Engine:
    """Planes below `directory`, each in a folder named by its account id.

    `master_key` is 32 bytes; it unwraps the data key of every tenant.
    """

    def __init__(self, directory: Path, master_key: bytes) -> None:
        self._directory = directory
        self._master_key = master_key
        self._planes: dict[str, Plane] = {}
        self._lock = threading.Lock()

    def create_plane(self, account_id: str) -> None:
        """Makes the empty store of a new account. Raises `StoreError`."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        Plane.create(str(self._directory / account_id), self._master_key)

    def plane(self, account_id: str, tenant_key: str) -> Plane:
        """The open store of an account. Raises `StoreError` where it cannot be opened."""
        plane = self._planes.get(account_id)
        if plane is not None:
            return plane
        with self._lock:
            plane = self._planes.get(account_id)
            if plane is None:
                path = str(self._directory / account_id)
                plane = Plane.open(path, self._master_key, tenant_key)
                self._planes[account_id] = plane
            return plane

    def release(self, account_id: str) -> None:
        """Closes an account's store, so that the next use opens it anew."""
        with self._lock:
            plane = self._planes.pop(account_id, None)
        if plane is not None:
            plane.close()

    def destroy_plane(self, account_id: str) -> None:
        """Destroys an account's data key first, then its files."""
        self.release(account_id)
        folder = self._directory / account_id
        (folder / "key").unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Closes every store."""
        with self._lock:
            planes, self._planes = self._planes, {}
        for plane in planes.values():
            plane.close()


def peek(directory: Path) -> Stats:
    """Counters of the plane in `directory`, read without its key and without its rows.

    This process must not have the plane open. Raises `StoreError`.
    """
    return Plane.peek(str(directory))


def encode_records(records: Iterable[Mapping[str, object]]) -> bytes:
    """Records as the JSON body of a write; `datetime` values become ISO 8601 text.

    Raises `ValueError` for NaN and infinities, `TypeError` for values JSON has no word for.
    """
    return json.dumps(list(records), allow_nan=False, default=_encode_datetime).encode()


def _encode_datetime(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    message = f"a {type(value).__name__} cannot be written as telemetry"
    raise TypeError(message)
