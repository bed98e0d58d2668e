"""Making of a data directory: master key, certificate, empty stores, settings."""

from __future__ import annotations

import json
import shutil
import textwrap
import uuid
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStore, ControlStoreUnavailable
from fleetcast.config import SETTINGS_FILE, Override, resolve
from fleetcast.config.declarations import declarations
from fleetcast.config.sections import POSTGRESQL
from fleetcast.errors import OperatorError, StoreError, reason
from fleetcast.security.certificate import certificate_hosts, issue_certificate
from fleetcast.security.master_key import (
    create_master_key,
    key_line,
    load_master_key,
    read_master_key,
    sync_readable,
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
    *,
    store: Sequence[Override] = (),
    master_key_file: Path | None = None,
) -> bool:
    """Makes everything that `serve` needs; its certificate is valid for `hosts` as well.

    `store` has settings of that section. The master key is copied from `master_key_file`, or new.
    Returns false if the directory joins an existing installation. Raises `OperatorError`; the
    directory is then left empty.
    """
    root = directory.root
    names = certificate_hosts(hosts)
    if root.is_dir() and _content(root):
        message = f"{root} is not empty: init makes a new data directory"
        raise OperatorError(message)
    given = [Override("service.environment", environment, "--environment"), *store]
    settings = resolve(root, environ, given).settings
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        root.chmod(0o700)
        master_key = _master_key(root, settings, master_key_file)
        issue_certificate(directory.tls, master_key, names)
        is_shared = settings.store.backend == POSTGRESQL
        if is_shared:
            write_private(directory.node, f"{uuid.uuid4()}\n".encode())
            directory.cache.mkdir(mode=0o700)
        else:
            directory.planes.mkdir(mode=0o700)
            revision = directory.accounts_revision(settings)
            ControlStore.create(directory.control, master_key, revision)
        # The settings come last, because a directory with settings counts as a data directory.
        write_private(root / SETTINGS_FILE, _settings_text(settings, given).encode())
        # Without the key, acknowledged records cannot be read after a power cut. The key is lost if
        # its name is not durable.
        sync_readable(directory.control, directory.tls, root, *root.absolute().parents)
        # The key must be safe first, because from then on the database belongs to it.
        return not is_shared or _installed(directory, settings, master_key)
    except (OSError, ControlStoreUnavailable, StoreError) as error:
        _clear(root)
        message = f"cannot make {root}: {reason(error, root)}"
        raise OperatorError(message) from error
    except OperatorError:
        _clear(root)
        raise


def _master_key(root: Path, settings: Settings, file: Path | None) -> bytes:
    """Returns the key of the settings, a copy of the key in `file`, or a new key."""
    security = settings.security
    if security.master_key_command or security.master_key_file != MASTER_KEY_FILE:
        return load_master_key(root, security)
    if file is None:
        return create_master_key(root / MASTER_KEY_FILE)
    master_key = read_master_key(file)
    write_private(root / MASTER_KEY_FILE, key_line(master_key))
    return master_key


def _installed(directory: DataDirectory, settings: Settings, master_key: bytes) -> bool:
    """Makes an installation in the database. Returns false if it joins an existing installation.

    Raises `StoreError`, and `OperatorError` if the other has another environment or master key.
    """
    from fleetcast.installation.cluster_stores import install  # noqa: PLC0415 - few need it

    return install(directory, settings, master_key)


def _settings_text(settings: Settings, given: Sequence[Override]) -> str:
    """The settings file: every setting with its explanation, as a comment if it is not given."""
    texts = {each.name: each.text for each in given}
    lines = [_HEAD]
    for name, item, explanation in declarations():
        # The environment decides about reflection, which has no other default.
        default = settings.grpc.reflection if item.default is None else item.default
        lines += textwrap.wrap(explanation, 98, initial_indent="\n# ", subsequent_indent="# ")
        lines += [f"{'' if name in texts else '# '}{name} = {json.dumps(texts.get(name, default))}"]
    return "\n".join([*lines, ""])


def _content(root: Path) -> list[Path]:
    """Returns the entries of a folder, without the entries of a fresh file system."""
    return [path for path in root.iterdir() if path.name != "lost+found"]


def _clear(root: Path) -> None:
    for path in _content(root) if root.is_dir() else []:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


_HEAD = """\
# Settings of this installation. A line such as `# limits.tags_max = 64` shows a default: to change
# the setting, remove the `# ` and write another value. `fleetcast config check` finds mistakes,
# `fleetcast config print` shows the settings in force."""
