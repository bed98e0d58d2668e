"""`fleetcast verify --backup`."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from fleetcast.backup.checking import check
from fleetcast.backup.listing import Listing
from fleetcast.cli.common import Run, table
from fleetcast.cli.progress import progress, reads
from fleetcast.errors import OperatorError
from fleetcast.security.master_key import load_master_key, read_master_key

if TYPE_CHECKING:
    from pathlib import Path

_COUNTS = ("rows", "values")
_READS = 4  # of each byte, if planes are opened: two hashes, its content, its answers


def verify_backup(run: Run, folder: Path, names: tuple[str, ...], key_file: Path | None) -> int:
    """Prints the content of a backup and its damages; returns 1 if a part is damaged.

    Without the backup's master key only the hashes of files are compared. Raises `OperatorError`.
    """
    listing = Listing.read(folder)
    chosen = {listing.tenant(name).record.name for name in names}
    rows: list[dict[str, object]] = []
    cells: list[list[object]] = []
    damaged: list[str] = []
    master_key = _master_key(run, key_file)
    checks = check(folder, listing, master_key, chosen)
    sizes = _sizes(listing, chosen, 1 if master_key is None else _READS)
    with progress("verifying", sum(sizes)) as bar:
        for size in sizes:
            checked = bar.step(partial(next, checks), size, reads())
            name = checked.tenant.record.name if checked.tenant else "backup"
            damaged += [f"{name}: {damage}" for damage in checked.damages]
            if checked.tenant is not None:
                counts = {key: getattr(checked.found, key, None) for key in _COUNTS}
                answers = None if checked.answers is None else f"{checked.answers:016x}"
                found = {"tenant": name, **counts, "answers": answers}
                rows.append({**found, "damages": checked.damages})
                cells.append([*found.values(), len(checked.damages)])
    text = [table(("tenant", *_COUNTS, "answers", "damages"), cells), *damaged]
    if master_key is None:
        text.append("Hashes alone were compared: --master-key FILE opens what the backup holds.")
    document = {"ok": not damaged, "opened": master_key is not None, "tenants": rows}
    run.answer({**document, "damages": damaged}, "\n".join(text))
    return 1 if damaged else 0


def _sizes(listing: Listing, names: set[str], reads_each: int) -> list[int]:
    """Returns the bytes that each step reads: own files first, then each chosen tenant."""
    own = sum(file.length for file in listing.installation.values())
    tenants = (saved for saved in listing.tenants if not names or saved.record.name in names)
    return [own, *(reads_each * saved.plane.length for saved in tenants)]


def _master_key(run: Run, key_file: Path | None) -> bytes | None:
    """Returns the key in `key_file`, else of the data directory, else `None`."""
    if key_file is not None:
        return read_master_key(key_file)
    try:
        security = run.data.settings(os.environ).settings.security
    except OperatorError:
        return None
    return load_master_key(run.data.root, security)
