"""Making of a data directory: master key, certificate, empty stores, settings."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStore, ControlStoreUnavailable
from fleetcast.config import SETTINGS_FILE, Override, resolve
from fleetcast.errors import OperatorError
from fleetcast.security.certificate import certificate_hosts, create_certificate
from fleetcast.security.master_key import (
    create_master_key,
    load_master_key,
    sync_folder,
    write_private,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory

MASTER_KEY_FILE = "master.key"


def make_data_directory(
    directory: DataDirectory,
    environment: str,
    environ: Mapping[str, str],
    hosts: Sequence[str] = (),
) -> None:
    """Makes everything that `serve` needs; its certificate is good for `hosts` as well.

    Raises `OperatorError`, and leaves nothing then.
    """
    root = directory.root
    names = certificate_hosts(hosts)
    if root.is_dir() and _content(root):
        message = f"{root} is not empty: init makes a new data directory"
        raise OperatorError(message)
    override = Override("service.environment", environment, "--environment")
    settings = resolve(root, environ, [override]).settings
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        root.chmod(0o700)
        if _key_is_elsewhere(settings):
            master_key = load_master_key(root, settings.security)
        else:
            master_key = create_master_key(root / MASTER_KEY_FILE)
        create_certificate(directory.tls, master_key, names)
        directory.planes.mkdir(mode=0o700)
        ControlStore.create(directory.control, master_key)
        # Last, because it is what makes the directory one of ours.
        write_private(root / SETTINGS_FILE, _SETTINGS_TEXT.format(environment).encode())
        # Acknowledged records are worth nothing after a power cut without the key, and the key
        # nothing without its name.
        for folder in (directory.control, directory.tls, root, *root.absolute().parents):
            if os.access(folder, os.R_OK):
                sync_folder(folder)
    except (OSError, ControlStoreUnavailable) as error:
        _clear(root)
        message = f"cannot make {root}: {error}"
        raise OperatorError(message) from error
    except OperatorError:
        _clear(root)
        raise


def _content(root: Path) -> list[Path]:
    """The entries, less those that a fresh file system brings."""
    return [path for path in root.iterdir() if path.name != "lost+found"]


def _clear(root: Path) -> None:
    for path in _content(root) if root.is_dir() else []:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _key_is_elsewhere(settings: Settings) -> bool:
    security = settings.security
    return bool(security.master_key_command) or security.master_key_file != MASTER_KEY_FILE


_SETTINGS_TEXT = """\
# Settings of this installation. `fleetcast config print` lists all, with their defaults.

[service]
environment = "{}"
"""
