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
from fleetcast.security.master_key import sync_readable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO


@contextmanager
def output_file(path: Path) -> Iterator[BinaryIO]:
    """Yields a file to be filled.

    A regular file is written next to its place, as `NAME.part`. It is renamed once it is whole and
    durable. A device, a pipe or a socket is written into. Symbolic links are followed. Example:
    `acme.parquet` is written as `acme.parquet.part`.

    Raises `OSError`. Raises `OperatorError` for a directory, and for another user's file, which
    would change hands. Raises `OperatorError` too if `locked_file` refuses `NAME.part`.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        status = None
    if status is None or stat.S_ISREG(status.st_mode):
        with _replaced(Path(os.path.realpath(path)), status) as file:
            yield file
    else:
        # A pipe that `/dev/stdout` links to has no real path that can be opened.
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
    held = locked_file(part, f"{part} is being written by another command")
    with os.fdopen(held, "wb") as file:
        try:
            file.truncate(0)
            if replaced is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(replaced.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    sync_readable(path.parent)


def locked_file(path: Path, taken: str) -> int:
    """Returns a locked descriptor of a regular file, which is made if it is missing.

    The lock lasts until the descriptor is closed. Raises `OSError`, also for a symbolic link.
    Raises `OperatorError` for a file that is not regular, belongs to another user or has a second
    name. Raises `OperatorError` with the message `taken` if another command has locked the file.
    """
    while True:
        held = _own_file(path)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            raise OperatorError(taken) from None
        # If another command has renamed or replaced the file since, this lock protects no file.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), path.lstat()):
                return held
        os.close(held)


def _own_file(path: Path) -> int:
    """Returns a descriptor of a new file, or of this user's regular file with one name.

    Raises `OSError`, `OperatorError`.
    """
    # With O_NONBLOCK no pipe or terminal keeps the command waiting.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    # A file made here needs no check. Some network file systems give it another owner.
    with suppress(FileExistsError):
        return os.open(path, flags | os.O_EXCL, 0o666)
    held = os.open(path, flags, 0o666)
    status = os.fstat(held)
    if not stat.S_ISREG(status.st_mode):
        reason = "is no regular file"
    elif status.st_uid != os.geteuid():
        reason = f"belongs to another user (uid {status.st_uid})"
    elif status.st_nlink > 1:
        reason = "has a second name, so a file elsewhere would change as well"
    else:
        return held
    os.close(held)
    message = f"{path} {reason}: name another file"
    raise OperatorError(message)


@contextmanager
def _opened(path: Path, status: os.stat_result) -> Iterator[BinaryIO]:
    """Opens an existing file that is not regular."""
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
