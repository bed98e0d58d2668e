"""`fleetcast restore`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fleetcast.backup.listing import Listing
from fleetcast.backup.restoring import Restored, RestoreKeys, restore_all, restore_tenant
from fleetcast.cli.common import BACKUP_KEY, Run, table, with_run
from fleetcast.cli.progress import progress, reads
from fleetcast.security.master_key import read_master_key

_READS = 5  # of each byte: to restore it, and hash and answers both here and in the backup
_HEADER = ("tenant", "saved_as", "rows", "values", "answers", "keys")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@click.option(
    "--tenant", metavar="NAME", help="Add only this tenant to an existing data directory."
)
@click.option("--as", "new_name", metavar="NEW", help="Name that the tenant gets.")
@BACKUP_KEY
@click.option(
    "--new-master-key", is_flag=True, help="Make a new master key for an empty data directory."
)
@with_run
def restore(
    run: Run,
    folder: Path,
    tenant: str | None,
    new_name: str | None,
    key_file: Path | None,
    new_master_key: bool,
) -> None:
    """Fill an empty data directory from the backup in DIR, or add one tenant to a directory.

    All restored data is read again and compared with the backup: rows, values, every sealed byte,
    and a hash over all answers. Keys are restored into an empty directory with the same master key.
    Otherwise make new keys.

    Example: fleetcast restore /mnt/backup --tenant acme --as acme-restored
    """
    if new_name is not None and tenant is None:
        message = "--as needs --tenant"
        raise click.UsageError(message)
    saved_key = None if key_file is None else read_master_key(key_file)
    folder = folder.absolute()

    def work() -> list[Restored]:
        if tenant is None:
            keys = RestoreKeys(saved_key, renewed=new_master_key)
            return list(restore_all(run.data, os.environ, folder, keys))
        names = (tenant, new_name or tenant)
        return [restore_tenant(run.data, os.environ, folder, names, saved_key)]

    size = _READS * sum(saved.plane.length for saved in Listing.read(folder).chosen(tenant))
    with progress("restoring", size) as bar:
        restored = bar.step(work, size, reads())
    rows = [_row(one) for one in restored]
    text = table(_HEADER, [[row[name] for name in _HEADER] for row in rows])
    text += "\nRows, values and answers are those of the backup."
    if any(one.saved.keys and not one.keys for one in restored):
        text += " Keys were not restored: make new ones with fleetcast key create."
    run.answer({"data": str(run.data.root), "tenants": rows}, text)


def _row(one: Restored) -> dict[str, object]:
    answers, content = f"{one.answers:016x}", one.saved.plane.content.hex()
    values = (one.name, one.saved.record.name, one.rows, one.values, answers, one.keys)
    return {**dict(zip(_HEADER, values, strict=True)), "content": content}
