"""A data directory on a file system that cannot be written: a snapshot, or a disk to be rescued."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from fleetcast.installation.directory import DataDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCKS = ("lock.mdb", "plane.mdb-lock", "plane.log-lock", "compaction.lock")
"""They say who has a store open on one machine, and are made anew."""


def is_read_only(root: Path) -> bool:
    """True if the file system of `root` is mounted read-only. Raises `OSError`."""
    return bool(os.statvfs(root).f_flag & os.ST_RDONLY)


@contextmanager
def readable(directory: DataDirectory) -> Iterator[DataDirectory]:
    """Stores that can be opened to be read: those of `directory`, or copies of them.

    To open a store is to write: locks, and what a crash has left of the log. So if the file system
    is read-only, control store and planes are copied into a temporary directory (`TMPDIR`), except
    for segments, which are linked there. Example: a snapshot with 50 GB of segments and 20 MB of
    logs takes 20 MB. Raises `OSError`.
    """
    if not directory.control.is_dir() or not is_read_only(directory.root):
        yield directory
        return
    with TemporaryDirectory(prefix="fleetcast-") as folder:
        copy = DataDirectory(Path(folder))
        without_locks = shutil.ignore_patterns(*_LOCKS)
        shutil.copytree(directory.control, copy.control, ignore=without_locks)
        shutil.copytree(
            directory.planes, copy.planes, ignore=without_locks, copy_function=_copy_or_link
        )
        yield copy


def _copy_or_link(source: str, target: str) -> None:
    if Path(source).parent.name == "segments":
        Path(target).symlink_to(source)
    else:
        shutil.copyfile(source, target)
