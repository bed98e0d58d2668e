"""Files that root's commands make in a data directory of another user, such as the service's."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.installation.directory import DataDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Chosen = Callable[[Path], bool]

_ROOT = 0
_PAUSE_SECONDS_MIN = 0.2
_PAUSE_ROUNDS = 20  # pauses of 20 rounds keep the rounds below 5% of a core


@contextlib.contextmanager
def left_to_owner(directory: Path) -> Iterator[None]:
    """Gives files that root makes in the block to the owner of `directory`.

    The owner could not open them otherwise. Files of the stores change hands soon after they are
    made, because the service may need them while the command runs. Files of a killed command do as
    well. Other files change hands at the end. Files that root owned before stay root's, such as an
    operator's master key. Does no work if the user is not root, or if root owns the directory.
    Raises `OSError`.
    """
    if os.geteuid() != _ROOT or not directory.is_dir() or directory.stat().st_uid == _ROOT:
        yield
        return
    stores = _stores(directory)

    def is_stored(path: Path) -> bool:
        return not stores.isdisjoint((path, *path.parents))

    kept = {path for path, _ in _of_root(directory) if not is_stored(path)}
    _hand_over(directory, is_stored)
    is_over = threading.Event()
    rounds = threading.Thread(target=_hand_over_repeatedly, args=(directory, is_stored, is_over))
    rounds.start()
    try:
        yield
    finally:
        is_over.set()
        rounds.join()
        _hand_over(directory, lambda path: path not in kept)


def _stores(directory: Path) -> set[Path]:
    """Returns the files and folders that the service itself makes."""
    place = DataDirectory(directory)
    folders = {place.control, place.planes, place.forecast, place.cache, place.restoring}
    return folders | {place.upkeep.parent, place.audit_log, place.lock}


def _hand_over_repeatedly(directory: Path, is_chosen: Chosen, is_over: threading.Event) -> None:
    pause_seconds = _PAUSE_SECONDS_MIN
    while not is_over.wait(pause_seconds):
        began = time.monotonic()
        _hand_over(directory, is_chosen)
        pause_seconds = max(_PAUSE_SECONDS_MIN, _PAUSE_ROUNDS * (time.monotonic() - began))


def _hand_over(directory: Path, is_chosen: Chosen) -> None:
    owner = directory.stat()
    for path, held in _of_root(directory):
        if is_chosen(path):
            with contextlib.suppress(OSError):  # the file is gone again
                os.chown(path.name, owner.st_uid, owner.st_gid, dir_fd=held, follow_symlinks=False)


def _of_root(directory: Path) -> Iterator[tuple[Path, int]]:
    """Yields root's files and folders, each with a descriptor of the folder that holds it.

    The owner of the directory cannot put a link in the place of a folder that is held open. A file
    with a second name is left out, because it may be a file of the system.
    """
    for folder, folders, files, held in os.fwalk(directory):
        for name in (*folders, *files):
            with contextlib.suppress(OSError):  # the file is gone again
                status = os.stat(name, dir_fd=held, follow_symlinks=False)
                is_alone = stat.S_ISDIR(status.st_mode) or status.st_nlink == 1
                if status.st_uid == _ROOT and is_alone:
                    yield Path(folder, name), held
