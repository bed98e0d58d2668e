"""Files that root's commands make in a data directory of somebody else, such as the service's."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ROOT = 0
_CLOCK_SECONDS = 1.0  # change times come from a clock that is a little behind


@contextlib.contextmanager
def left_to_owner(directory: Path) -> Iterator[None]:
    """Gives what root makes in the block to the owner of `directory`, who could not open it else.

    Does nothing for other users, and in a directory of root's.
    """
    if os.geteuid() != _ROOT or not directory.is_dir() or directory.stat().st_uid == _ROOT:
        yield
        return
    began = time.time() - _CLOCK_SECONDS
    try:
        yield
    finally:
        owner = directory.stat()
        for path in directory.rglob("*"):
            with contextlib.suppress(OSError):  # it is gone again
                status = path.lstat()
                if status.st_uid == _ROOT and status.st_ctime >= began:
                    os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
