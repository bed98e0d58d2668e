"""`fleetcast backup`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fleetcast.backup.saving import save
from fleetcast.cli.common import Run, table, with_run


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@with_run
def backup(run: Run, folder: Path) -> int:
    """Save all tenants, their keys and the settings into DIR, whether the service runs or not.

    A second backup into DIR adds what is new since the first. The master key is never in it: keep
    a copy of that elsewhere.
    """
    folder = folder.absolute()
    summary = save(run.data, os.environ, folder)
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
        "bytes_written": summary.bytes_written,
        "bytes_linked": summary.bytes_linked,
        "tenants": rows,
        "failed": summary.failed,
    }
    spent = f"{summary.bytes_written} bytes written, {summary.bytes_linked} linked"
    lines = [
        table(("tenant", "rows", "values", "content"), [[*row.values()] for row in rows]),
        f"Backup {summary.listing.number} in {folder}: {spent}.",
    ]
    lines += [f"{name} could not be saved: {why}" for name, why in summary.failed.items()]
    run.answer(document, "\n".join(lines))
    return 1 if summary.failed else 0
