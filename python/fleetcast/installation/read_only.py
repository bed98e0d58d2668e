"""A data directory on a read-only file system: a snapshot, or a disk to be rescued."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from fleetcast.installation.directory import DataDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.config import Settings

_SEGMENTS = "segments"
_STORES = ("control", "planes", "forecast")
_LOCKS = ("lock.mdb", "plane.mdb-lock", "plane.log-lock", "compaction.lock")
"""Files that say which processes of a machine have a store open. They are made again in a copy."""


def is_read_only(root: Path) -> bool:
    """Returns true if the file system of `root` is mounted read-only. Raises `OSError`."""
    return bool(os.statvfs(root).f_flag & os.ST_RDONLY)


@contextmanager
def readable(directory: DataDirectory, *, to_scan: bool = False) -> Iterator[DataDirectory]:
    """Gives stores that can be opened to be read: the stores of `directory`, or copies of them.

    Opening a store writes: locks, and the part of the log that a crash has left. If the file system
    is read-only, a store is therefore copied into a temporary directory (`TMPDIR`) on its first
    use. Its segments are linked instead. Set `to_scan` if planes are to be scanned. Raises
    `OSError`.

    Example: a snapshot with 50 GB of segments and 20 MB of logs takes 20 MB.
    """
    if not directory.control.is_dir() or not is_read_only(directory.root):
        yield directory
        return
    with TemporaryDirectory(prefix="fleetcast-") as folder:
        yield _Copies(Path(folder), directory, to_scan)


@dataclass(frozen=True)
class _Copies(DataDirectory):
    """Copies of the stores of `source`, each made below `root` on its first use."""

    source: DataDirectory
    to_scan: bool

    @property
    def origin(self) -> Path:
        return self.source.root

    def below(self, name: str) -> Path:
        """Returns the path of a part, or of the copy of a store."""
        return self._copied(self.source.below(name)) if name in _STORES else super().below(name)

    def accounts_revision(self, settings: Settings) -> Path:
        """Returns a file in the copy: a copy may be older, and must not note its revision."""
        return self.root / Path(settings.security.accounts_revision_file).name

    def _copied(self, store: Path) -> Path:
        copy = self.root / store.name
        if store.is_dir() and not copy.exists():
            ignored = shutil.ignore_patterns(*_LOCKS, _SEGMENTS)
            shutil.copytree(store, copy, ignore=ignored, copy_function=shutil.copyfile)
            for segments in store.glob(f"*/{_SEGMENTS}"):
                self._link(segments, copy / segments.relative_to(store))
        return copy

    def _link(self, segments: Path, link: Path) -> None:
        """Links a folder of segments.

        With `to_scan` links each segment, as a scan adds its own segments.

        A backup must not meet links to files. A second name of such a link is a link too, and leads
        nowhere once the snapshot is gone.
        """
        if not self.to_scan:
            link.symlink_to(segments)
            return
        link.mkdir()
        for segment in segments.iterdir():
            (link / segment.name).symlink_to(segment)
