"""`fleetcast verify`."""

from __future__ import annotations

import click

from fleetcast.cli.common import Run, table, with_run
from fleetcast.errors import StoreError

_COUNTS = ("blocks", "segments", "rows", "values")


@click.command()
@click.argument("names", nargs=-1, metavar="[TENANT]...")
@with_run
def verify(run: Run, names: tuple[str, ...]) -> int:
    """Look at every stored byte of some tenants, or of all, whether the service runs or not.

    Nothing is changed. Where something is damaged there is a line for each damage, and the exit
    status is 1.
    """
    rows: list[dict[str, object]] = []
    cells: list[list[object]] = []
    damaged: list[str] = []
    with run.opened() as installation:
        everyone = installation.tenants.all()
        for tenant in [installation.tenants.get(name) for name in names] or everyone:
            counts: dict[str, int | None] = dict.fromkeys(_COUNTS)
            try:
                found = installation.engine.verify(tenant.account_id)
                counts = {name: getattr(found, name) for name in _COUNTS}
                damages = found.damages
            except StoreError as error:
                damages = [str(error)]
            damaged += [f"{tenant.name}: {damage}" for damage in damages]
            rows.append({"tenant": tenant.name, **counts, "damages": damages})
            cells.append([tenant.name, *counts.values(), len(damages)])
    text = "\n".join([table(("tenant", *_COUNTS, "damages"), cells), *damaged])
    run.answer({"ok": not damaged, "tenants": rows}, text)
    return 1 if damaged else 0
