"""Files that root's commands make in a data directory of somebody else, such as the service's."""

from __future__ import annotations

import contextlib
import os
import stat
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
        # By descriptors of folders, so that the owner cannot put a link in the place of one. A file
        # with another name may be one of the system's.
        for _, folders, files, held in os.fwalk(directory):
            for name in (*folders, *files):
                with contextlib.suppress(OSError):  # it is gone again
                    status = os.stat(name, dir_fd=held, follow_symlinks=False)
                    is_made_now = status.st_uid == _ROOT and status.st_ctime >= began
                    if is_made_now and (stat.S_ISDIR(status.st_mode) or status.st_nlink == 1):
                        os.chown(
                            name, owner.st_uid, owner.st_gid, dir_fd=held, follow_symlinks=False
                        )
