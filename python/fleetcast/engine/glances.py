"""Reads the state and the counts of planes without opening them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fleetcast._core import Planes

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast._core import Stats

State = tuple[int, ...]
"""Nanoseconds since 1970 of a change, or 0, and more numbers. Every change gives another state."""


class Glance(NamedTuple):
    """Reads a plane without opening it."""

    state: Callable[[], State]
    """Returns the state of the plane. Raises `OSError`, `StoreError`."""
    counts: Callable[[], Stats]
    """Returns the counts of the plane's contents, without its key. Raises `StoreError`."""


def folder_state(folder: str) -> State:
    """Returns the time of change, size and inode number of a plane's file. Raises `OSError`."""
    status = os.stat(f"{folder}/plane.mdb")  # noqa: PTH116 - of all tenants, again and again
    return status.st_mtime_ns, status.st_size, status.st_ino


def peek(directory: Path | str) -> Stats:
    """Reads the counters of the plane in `directory` without its key, its rows, a lock or a sync.

    Any process may have the plane open. Raises `StoreError`.
    """
    folder = Path(directory)
    return Planes.in_directory(folder.parent).counts(folder.name)
