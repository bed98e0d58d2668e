"""A data directory on a file system that cannot be written: a snapshot, or a disk to be rescued."""

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
_LOCKS = ("lock.mdb", "plane.mdb-lock", "plane.log-lock", "compaction.lock")
"""They say who has a store open on one machine, and are made anew."""


def is_read_only(root: Path) -> bool:
    """True if the file system of `root` is mounted read-only. Raises `OSError`."""
    return bool(os.statvfs(root).f_flag & os.ST_RDONLY)


@contextmanager
def readable(directory: DataDirectory, *, to_scan: bool = False) -> Iterator[DataDirectory]:
    """Stores that can be opened to be read: those of `directory`, or copies of them.

    To open a store is to write: locks, and what a crash has left of the log. So if the file system
    is read-only, a store is copied into a temporary directory (`TMPDIR`) when it is first asked
    for, except for segments, which are linked there. Example: a snapshot with 50 GB of segments
    and 20 MB of logs takes 20 MB. Only with `to_scan` can planes be scanned. Raises `OSError`.
    """
    if not directory.control.is_dir() or not is_read_only(directory.root):
        yield directory
        return
    with TemporaryDirectory(prefix="fleetcast-") as folder:
        yield _Copies(Path(folder), directory, to_scan)


@dataclass(frozen=True)
class _Copies(DataDirectory):
    """Copies of the stores of `source`, each made below `root` when it is first asked for."""

    source: DataDirectory
    to_scan: bool

    @property
    def control(self) -> Path:
        return self._copied(self.source.control)

    def accounts_revision(self, settings: Settings) -> Path:
        """A copy may be an older one, and notes nothing."""
        return self.root / Path(settings.security.accounts_revision_file).name

    @property
    def planes(self) -> Path:
        return self._copied(self.source.planes)

    @property
    def forecast(self) -> Path:
        return self._copied(self.source.forecast)

    def _copied(self, store: Path) -> Path:
        copy = self.root / store.name
        if store.is_dir() and not copy.exists():
            ignored = shutil.ignore_patterns(*_LOCKS, _SEGMENTS)
            shutil.copytree(store, copy, ignore=ignored, copy_function=shutil.copyfile)
            for segments in store.glob(f"*/{_SEGMENTS}"):
                self._link(segments, copy / segments.relative_to(store))
        return copy

    def _link(self, segments: Path, link: Path) -> None:
        """Links a folder of segments; `to_scan` links each of them, as a scan adds some of its own.

        A backup must not meet links to files: a second name of such a link is a link, too, and
        leads nowhere once the snapshot is gone.
        """
        if not self.to_scan:
            link.symlink_to(segments)
            return
        link.mkdir()
        for segment in segments.iterdir():
            (link / segment.name).symlink_to(segment)
