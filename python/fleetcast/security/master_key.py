"""The master key: 32 bytes that wrap every tenant's data key and pepper every API key.

The key is one line of hexadecimal or base64 in a file, or a program prints the line.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
import stat
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError
from fleetcast.security.key_command import printed_by

if TYPE_CHECKING:
    from pathlib import Path

    from fleetcast.config.sections import Security

MASTER_KEY_BYTES = 32
_CHECK_LABEL = "fleetcast backup check 1"
KEY_ID_CHARACTERS = 16
"""Length of the name of a master key."""
_BEYOND_OWNER = 0o077
_BEYOND_GROUP = 0o027
_WITHOUT_IT = (
    "put back the copy you kept, or say with security.master_key_file or"
    " security.master_key_command where it is; without it nothing that is stored can be read"
)


def create_master_key(path: Path) -> bytes:
    """Writes a fresh key to `path`, mode 0600. Raises `OSError`, also if the file exists."""
    key = secrets.token_bytes(MASTER_KEY_BYTES)
    write_private(path, key_line(key))
    return key


def key_line(master_key: bytes) -> bytes:
    """Returns the content of a file that has the key."""
    return f"{master_key.hex()}\n".encode()


def load_master_key(directory: Path, settings: Security) -> bytes:
    """Returns the key of the settings. Raises `OperatorError`; no message holds key bytes."""
    if settings.master_key_command:
        printed = printed_by(settings.master_key_command)
        return _decoded(printed.strip(), "security.master_key_command")
    return read_master_key(directory / settings.master_key_file)


def read_master_key(path: Path) -> bytes:
    """Returns the key in a file. Raises `OperatorError`; no message holds key bytes."""
    try:
        text = path.read_bytes().decode("ascii", "replace")
    except FileNotFoundError:
        message = f"there is no master key at {path}: {_WITHOUT_IT}"
        raise OperatorError(message) from None
    except OSError as error:
        message = f"cannot read the master key at {path}: {error.strerror}"
        raise OperatorError(message) from None
    return _decoded(text.strip(), str(path))


def exposure(path: Path) -> str | None:
    """Describes how other users can read a key file, and the remedy; `None` if no other user can.

    The group of a file of root's may read it, because a secret is passed this way to a service that
    is not root. Example: mode 0640 is refused for the user's own file, and accepted for root's.
    Raises `OSError`.
    """
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    is_lent = status.st_uid == 0 != os.geteuid()
    if not mode & (_BEYOND_GROUP if is_lent else _BEYOND_OWNER):
        return None
    return f"{path} has mode {mode:04o}, so others can get at the key: chmod 600 {path}"


def refuse_exposed_key(directory: Path, settings: Security) -> None:
    """Raises `OperatorError` if other users can read or change the file of the master key."""
    if settings.master_key_command:
        return
    with contextlib.suppress(OSError):  # `load_master_key` has the better message
        problem = exposure(directory / settings.master_key_file)
        if problem:
            raise OperatorError(problem)


def derive(master_key: bytes, label: str) -> bytes:
    """Derives a key for one purpose: HMAC-SHA256 of the label under the master key."""
    return hmac.digest(master_key, label.encode(), hashlib.sha256)


def master_key_check(master_key: bytes) -> str:
    """Returns a text that differs between master keys and reveals no part of a key."""
    return derive(master_key, _CHECK_LABEL).hex()


def key_id(master_key: bytes) -> str:
    """Returns the name of a master key: the first 16 characters of its check."""
    return master_key_check(master_key)[:KEY_ID_CHARACTERS]


def write_private(path: Path, content: bytes) -> None:
    """Writes a new file that only its owner can read, durably. Raises `OSError`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_private(
    path: Path, content: bytes, owner: os.stat_result | None = None, mode: int = 0o600
) -> None:
    """Makes or replaces a file, durably: it has the whole content, or is as it was.

    If root calls this, the file belongs to the owner of `owner`. Raises `OSError`.
    """
    staged = path.with_name(f".{path.name}.new")
    staged.unlink(missing_ok=True)  # of a process that was killed here
    write_private(staged, content)
    if owner is not None and os.geteuid() == 0:
        os.chown(staged, owner.st_uid, owner.st_gid)
    staged.chmod(mode)
    staged.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes the names in `folder` durable. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_readable(*folders: Path) -> None:
    """Makes the names in folders durable, if the folders are there and this user may read them.

    Raises `OSError`.
    """
    for folder in folders:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            sync_folder(folder)


def _decoded(line: str, source: str) -> bytes:
    """Returns the key of a line. Raises `OperatorError` with the length of a wrong key."""
    counts = []
    for read in (bytes.fromhex, lambda text: base64.b64decode(text, validate=True)):
        with contextlib.suppress(ValueError):
            key = read(line)
            if len(key) == MASTER_KEY_BYTES:
                return key
            counts.append(len(key))
    held = f"{counts[0]} bytes" if counts else f"{len(line)} characters that are neither"
    message = f"{source} holds {held}: a master key is 32 bytes in hexadecimal or base64"
    raise OperatorError(message)
