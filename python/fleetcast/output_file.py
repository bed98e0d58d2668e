"""Files that commands write at a path of the user's choice."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO


@contextmanager
def output_file(path: Path) -> Iterator[BinaryIO]:
    """A file to be filled.

    A regular file is written beside its place, as `NAME.part`, and renamed once it is whole and
    durable. A device, a pipe or a socket is written into. Symbolic links are followed.

    Raises `OSError`, and `OperatorError` for a directory, for another user's file, which would
    change hands, and while another command writes the same file.
    """
    path = Path(os.path.realpath(path))
    try:
        status = path.stat()
    except FileNotFoundError:
        status = None
    if status is None or stat.S_ISREG(status.st_mode):
        with _replaced(path, status) as file:
            yield file
    else:
        with _opened(path, status) as file:
            yield file


@contextmanager
def _replaced(path: Path, replaced: os.stat_result | None) -> Iterator[BinaryIO]:
    if replaced is not None and replaced.st_uid != os.geteuid():
        message = (
            f"{path} belongs to another user (uid {replaced.st_uid}) and would change hands:"
            " remove it, or name another file"
        )
        raise OperatorError(message)
    part = path.with_name(f"{path.name}.part")
    with os.fdopen(_locked(part), "wb") as file:
        try:
            if replaced is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(replaced.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _locked(part: Path) -> int:
    """A descriptor of the file, emptied and locked until it is closed.

    Raises `OSError`, also for a symbolic link, and `OperatorError` while another command has it.
    """
    while True:
        # Nothing is emptied before the lock: what another command has written stays whole.
        held = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            message = f"{part} is being written by another command"
            raise OperatorError(message) from None
        # The other command may have renamed its file meanwhile, which is not to be emptied.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), part.lstat()):
                os.ftruncate(held, 0)
                return held
        os.close(held)


@contextmanager
def _opened(path: Path, status: os.stat_result) -> Iterator[BinaryIO]:
    """A file that is there already and is no regular one."""
    if stat.S_ISDIR(status.st_mode):
        message = f"{path} is a directory: name a file"
        raise OperatorError(message)
    if not stat.S_ISSOCK(status.st_mode):
        with os.fdopen(os.open(path, os.O_WRONLY), "wb") as file:
            yield file
        return
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        with connection.makefile("wb") as file:
            yield cast("BinaryIO", file)
