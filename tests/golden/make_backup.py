"""Writes a golden backup with this version: `python -m tests.golden.make_backup NAME`.

Like a golden store it is never written again. It is the second backup into its folder, so that
files of two backups make it up.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from fleetcast.backup.saving import save
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.making import make_data_directory
from fleetcast.installation.opening import opened

from .make import HERE, MASTER_KEY, TENANT, batch, fill, write, write_answers

BACKUPS = HERE / "backups"


def make(name: str) -> None:
    """An installation with the tenant of the golden stores, which has a key, and one without."""
    folder = BACKUPS / name
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        key_file = Path(scratch) / "master.key"
        key_file.write_text(f"{MASTER_KEY.hex()}\n")
        command = f"cat {key_file}"
        environ = {**os.environ, "FLEETCAST_SECURITY__MASTER_KEY_COMMAND": command}
        directory = DataDirectory(Path(scratch) / "data")
        make_data_directory(directory, "sandbox", environ, ())
        with opened(directory, environ) as installation:
            tenant = installation.tenants.create(TENANT)
            installation.tenants.create("idle")
            installation.keys.create(TENANT, scopes=["telemetry:write"], environment="sandbox")
            plane = installation.engine.plane(tenant.account_id, TENANT)
            model = fill(plane)
        save(directory, environ, folder / "backup")
        with opened(directory, environ) as installation:
            plane = installation.engine.plane(tenant.account_id, TENANT)
            write(plane, model, batch(8))
            written = plane.stats().rows
        save(directory, environ, folder / "backup")
    (folder / "backup" / "backup.lock").unlink()
    write_answers(model, written, folder)


if __name__ == "__main__":
    make(sys.argv[1])
