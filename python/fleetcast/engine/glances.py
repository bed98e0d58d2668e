"""Looks at planes that do not open them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fleetcast._core import Planes

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast._core import Stats

State = tuple[int, int, int]
"""Nanoseconds since 1970 of a change, and two numbers: another one after each change."""


class Glance(Protocol):
    """Looks at one plane that do not open it."""

    def state(self) -> State:
        """The state that it is in. Raises `OSError`."""

    def counts(self) -> Stats:
        """Counts of what it holds. Raises `StoreError`."""


class FolderGlance:
    """Looks at the plane in `folder`; `counts` reads its counts without its key."""

    __slots__ = ("_folder", "counts")

    def __init__(self, folder: str, counts: Callable[[], Stats]) -> None:
        self._folder = folder
        self.counts = counts

    def state(self) -> State:
        """Time of change, size and number of its file. Raises `OSError`."""
        status = os.stat(f"{self._folder}/plane.mdb")  # noqa: PTH116 - of all tenants, again and again
        return status.st_mtime_ns, status.st_size, status.st_ino


def peek(directory: Path | str) -> Stats:
    """Counters of the plane in `directory`, read without its key, its rows, a lock or a sync.

    Any process may have the plane open. Raises `StoreError`.
    """
    folder = Path(directory)
    return Planes.in_directory(folder.parent).counts(folder.name)
