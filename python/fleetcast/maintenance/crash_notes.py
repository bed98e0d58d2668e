"""Notes on disk of the upkeep under way, which show the tenant whose upkeep ended the process.

A lack of memory may end a process without an exception. If the next start finds a note, that upkeep
was under way at the end. The upkeep then counts as failed, once for each such end in a row. So it
is tried later each time, and does not end the process before the next tenants have had their turn.
"""

from __future__ import annotations

import contextlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class CrashNotes:
    """Keeps a file in `folder` for each account whose upkeep is under way."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for path in (folder.parent, folder):
            path.mkdir(mode=0o700, exist_ok=True)
        self._crashes = {path.name: _count(path) for path in folder.iterdir()}

    def crashes(self, account_id: str) -> int:
        """Number of times in a row that the process ended during this account's upkeep."""
        return self._crashes.get(account_id, 0)

    @contextmanager
    def noted(self, account_id: str) -> Iterator[None]:
        """Keeps the note until the end of the block. If the process ends before, the note stays."""
        path = self._folder / account_id
        with contextlib.suppress(OSError):  # the disk may be full, and upkeep may make room
            path.touch(mode=0o600)
            path.write_text(str(self.crashes(account_id) + 1))
        try:
            yield
        finally:
            self.forget(account_id)

    def forget(self, account_id: str) -> None:
        """Removes the note of an account that did not end the process, or is gone."""
        self._crashes.pop(account_id, None)
        with contextlib.suppress(OSError):
            (self._folder / account_id).unlink(missing_ok=True)


def _count(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 1  # the process ended before the number was written
