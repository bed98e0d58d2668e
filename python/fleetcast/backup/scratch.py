"""Folders for the time of a check. One whose process was killed is removed by the next check."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "fleetcast-verify-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder among the temporary files, locked until it is removed. Raises `OSError`."""
    _remove_abandoned(Path(tempfile.gettempdir()))
    folder, lock = _locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked_folder() -> tuple[Path, int]:
    """A folder and its lock. Another check may remove it before it is locked: then one more."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(FileNotFoundError):
            lock = _open(folder)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _remove_abandoned(parent: Path) -> None:
    """Removes the folders that nobody holds. Those of other users are left to them."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = _open(folder)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(lock)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
