"""`fleetcast verify`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetcast.cli.common import BACKUP_KEY, Run, table, tenant_names, with_run
from fleetcast.cli.progress import bytes_of, progress, reads
from fleetcast.errors import StoreError
from fleetcast.forecast.serving.store import PredictionStoreUnavailable
from fleetcast.security.handover import UNSETTLED

if TYPE_CHECKING:
    from fleetcast.installation.opening import Installation

_FOLDER: click.ParamType[Path] = click.Path(path_type=Path, file_okay=False)
_READS = 2  # of each byte: its content, and its answers
_COUNTS = ("blocks", "segments", "rows", "values")


@click.command()
@click.argument("names", nargs=-1, metavar="[TENANT]...", shell_complete=tenant_names)
@click.option("--backup", type=_FOLDER, metavar="DIR", help="Check the backup in DIR instead.")
@BACKUP_KEY
@with_run
def verify(run: Run, names: tuple[str, ...], backup: Path | None, key_file: Path | None) -> int:
    """Check every stored byte of some tenants, or of all, whether the service runs or not.

    No file is changed. Accounts are checked as well, and forecasts if no tenant is named. If data
    is damaged, a line names each damage and the exit status is 1. For a backup, each file is
    compared with its SHA-256, and all planes are opened and counted.

    Example: fleetcast verify --backup /mnt/backup --master-key master.key
    """
    if backup is not None:
        from fleetcast.cli.verify_backup import verify_backup

        return verify_backup(run, backup.absolute(), names, key_file)
    rows: list[dict[str, object]] = []
    cells: list[list[object]] = []
    damaged: list[str] = []
    with run.opened_to_read(to_scan=True) as installation:
        engine = installation.engine
        tenants = installation.tenants
        chosen = [tenants.get(name) for name in names] or tenants.all()
        sizes = {
            tenant.name: bytes_of(engine.glance(tenant.account_id), "segment_bytes")
            for tenant in chosen
        }
        with progress("verifying", _READS * sum(sizes.values())) as bar:
            for tenant in chosen:
                counts: dict[str, int | None] = dict.fromkeys(_COUNTS)
                answers = None
                try:
                    work = partial(engine.verify, tenant.account_id)
                    found = bar.step(work, sizes[tenant.name], reads())
                    counts = {name: getattr(found, name) for name in _COUNTS}
                    damages = found.damages
                    if not damages:
                        scan = partial(engine.answers_hash, tenant.account_id, tenant.name)
                        answers = f"{bar.step(scan, sizes[tenant.name], reads()):016x}"
                except StoreError as error:
                    damages = [str(error)]
                damaged += [f"{tenant.name}: {damage}" for damage in damages]
                row = {"tenant": tenant.name, **counts, "answers": answers}
                rows.append({**row, "damages": damages})
                cells.append([*row.values(), len(damages)])
        forecasts = [] if names else _forecast_damages(installation)
        notes = [UNSETTLED] if installation.stores.handover.read() else []
    damaged += forecasts
    text = "\n".join([table(("tenant", *_COUNTS, "answers", "damages"), cells), *damaged, *notes])
    run.answer({"ok": not damaged, "tenants": rows, "forecasts": forecasts, "notes": notes}, text)
    return 1 if damaged else 0


def _forecast_damages(installation: Installation) -> list[str]:
    try:
        installation.stores.predictions.check()
    except PredictionStoreUnavailable as error:
        return [str(error)]
    return []
