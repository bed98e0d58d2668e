"""`fleetcast backup`."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from fleetcast.backup.saving import save
from fleetcast.cli.common import Run, table, with_run
from fleetcast.cli.progress import progress, reads


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@with_run
def backup(run: Run, folder: Path) -> int:
    """Save all tenants, their keys and the settings into DIR, whether the service runs or not.

    A second backup into DIR adds only new files. The master key is never in a backup: keep a copy
    of the key in another place.

    Example: fleetcast backup /mnt/backup
    """
    folder = folder.absolute()
    new = _new_bytes(run.data.planes, folder)
    with progress("saving", new) as bar:
        summary = bar.step(partial(save, run.data, os.environ, folder), new, reads())
    rows = [
        {
            "tenant": tenant.record.name,
            "rows": tenant.plane.rows,
            "values": tenant.plane.values,
            "content": tenant.plane.content.hex(),
        }
        for tenant in summary.listing.tenants
    ]
    document = {
        "ok": not summary.failed,
        "backup": str(folder),
        "number": summary.listing.number,
        "master_key": summary.listing.master_key_id,
        "bytes_written": summary.bytes_written,
        "bytes_linked": summary.bytes_linked,
        "tenants": rows,
        "failed": summary.failed,
    }
    spent = f"{summary.bytes_written} bytes written, {summary.bytes_linked} linked"
    lines = [
        table(("tenant", "rows", "values", "content"), [[*row.values()] for row in rows]),
        f"Backup {summary.listing.number} in {folder}: {spent}.",
        f"It needs master key {summary.listing.master_key_id}.",
    ]
    lines += [f"{name} could not be saved: {why}" for name, why in summary.failed.items()]
    run.answer(document, "\n".join(lines))
    return 1 if summary.failed else 0


def _new_bytes(planes: Path, folder: Path) -> int:
    """Returns the bytes of the segments that the folder lacks: nearly all that a backup reads."""
    known = {path.name for path in folder.glob("planes/*/segments/*")}
    size = 0
    for path in planes.glob("*/segments/*"):
        with suppress(FileNotFoundError):  # a compaction may remove a segment
            size += 0 if path.name in known else path.stat().st_size
    return size
