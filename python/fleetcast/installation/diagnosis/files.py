"""Checks of the data directory's files: who may read them, and the file system below them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.installation.diagnosis.finding import Finding
from fleetcast.installation.read_only import is_read_only

if TYPE_CHECKING:
    from collections.abc import Iterator

_OTHERS_MAY = 0o077
_MAY_BE_OPEN = {"ca.pem", "server.pem", "fleetcast.toml", "master.key"}  # the key has its own check
_NAMED_MAX = 5
_FREE_BYTES_LEAST = 256 << 20  # a round of compaction writes some tens of MiB before it frees space
_FREE_FILES_LEAST = 1_000
_FREE_SHARE_LOW = 0.1
# File systems of several machines, on which LMDB's lock and shared map do not work. The next line
# has file systems whose files are lost when the machine ends.
_REMOTE = {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "fuse.sshfs", "lustre"}
_IN_MEMORY = {"tmpfs", "ramfs"}


def check_files(root: Path) -> Iterator[Finding]:
    """Checks modes and owners of all files, room on the disk, and kind of file system."""
    yield _directory_mode(root)
    yield from _all_modes(root)
    yield _room(root)
    yield from _file_system(root)
    if is_read_only(root):
        detail = "it is mounted read-only: the data can be read, and the service cannot run"
        yield Finding.failure("file system", detail, "mount it for writing, or look at the disk")


def _directory_mode(root: Path) -> Finding:
    mode = stat.S_IMODE(root.stat().st_mode)
    detail = f"{root} has mode {mode:04o}"
    if mode & _OTHERS_MAY:
        return Finding.failure("data directory", f"{detail}, open to others", f"chmod 700 {root}")
    return Finding.good("data directory", detail)


def _all_modes(root: Path) -> Iterator[Finding]:
    owner = root.stat().st_uid
    count, exposed, foreign = 0, [], []
    for path, status in _entries(root):
        count += 1
        if status.st_mode & _OTHERS_MAY and path.name not in _MAY_BE_OPEN:
            exposed.append(str(path))
        if status.st_uid != owner:
            foreign.append(str(path))
    if exposed:
        detail = f"others can get at {_some(exposed)}"
        yield Finding.failure("file modes", detail, f"chmod -R go= {root}")
    if foreign:
        detail = f"user {owner} has {root}, but not {_some(foreign)}"
        advice = f"chown -R {owner} {root}, and run fleetcast as that user"
        yield Finding.failure("file owners", detail, advice)
    if not exposed and not foreign:
        yield Finding.good("file modes", f"{count} files and folders are their owner's alone")


def _entries(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yields all entries below `root`, except entries that a running service has just removed."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            try:
                yield path, path.lstat()
            except FileNotFoundError:
                continue


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _room(root: Path) -> Finding:
    found = os.statvfs(root)
    free, whole = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    share = free / whole if whole else 1.0
    detail = f"{free / (1 << 30):.1f} GiB are free, {share:.0%}"
    advice = "make room, or lower retention (fleetcast tenant set): writes end when it is full"
    if found.f_files and found.f_favail < _FREE_FILES_LEAST:
        return Finding.failure("disk space", f"only {found.f_favail} more files fit", advice)
    if free < _FREE_BYTES_LEAST:
        return Finding.failure("disk space", detail, advice)
    if share < _FREE_SHARE_LOW:
        return Finding.warning("disk space", detail, advice)
    return Finding.good("disk space", detail)


def _file_system(root: Path) -> Iterator[Finding]:
    kind = _kind(root.resolve())
    if kind in _REMOTE:
        advice = "move the data directory to a disk of this machine"
        yield Finding.failure("file system", f"{kind}: stores need locks of this machine", advice)
    elif kind in _IN_MEMORY:
        advice = "move the data directory to a disk"
        yield Finding.warning("file system", f"{kind}: gone when the machine is off", advice)
    elif kind is not None:
        yield Finding.good("file system", kind)


def _kind(path: Path) -> str | None:
    """Returns the kind of the file system that `path` lies on, `None` if it is unknown."""
    try:
        lines = Path("/proc/self/mounts").read_text(errors="replace").splitlines()
    except OSError:
        return None
    found = None
    longest = -1
    for line in lines:
        _, point, kind, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        if path.is_relative_to(point) and len(point) >= longest:
            longest, found = len(point), kind
    return found
