"""`fleetcast compact`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from fleetcast.cli.common import Run, patiently, table, with_run
from fleetcast.cli.progress import progress
from fleetcast.errors import StoreError

if TYPE_CHECKING:
    from fleetcast.engine import Glance


@click.command()
@click.argument("names", nargs=-1, metavar="[TENANT]...")
@with_run
def compact(run: Run, names: tuple[str, ...]) -> int:
    """Compact the stores of some tenants, or of all, now.

    While `serve` runs this is hardly ever needed: it compacts by itself.
    """
    rows: list[dict[str, object]] = []
    with run.opened() as installation:
        engine = installation.engine
        tenants = installation.tenants
        chosen = [tenants.get(name) for name in names] or tenants.all()
        glances = {tenant.name: engine.glance(tenant.account_id) for tenant in chosen}
        logs = {name: _log_bytes(glance) for name, glance in glances.items()}
        with progress("compacting", sum(logs.values())) as bar:
            for tenant in chosen:
                plane = engine.plane(tenant.account_id, tenant.name)
                before, glance = logs[tenant.name], glances[tenant.name]
                done = bar.step(
                    partial(patiently, partial(plane.compact, whole=True)),
                    before,
                    partial(_compacted, before, glance),
                )
                row: dict[str, object] = {"tenant": tenant.name, "busy": done is None}
                for name in ("blocks", "merged", "expired", "bytes_written"):
                    row[name] = None if done is None else getattr(done, name)
                rows.append(row)
                engine.release(tenant.account_id)
    header = ("tenant", "busy", "blocks", "merged", "expired", "bytes_written")
    cells = [[row[name] for name in header] for row in rows]
    run.answer({"tenants": rows}, table(header, cells))
    return 1 if any(row["busy"] for row in rows) else 0


def _log_bytes(glance: Glance) -> int:
    """Bytes that are not in segments yet; 0 where the store does not say, as opening it will."""
    try:
        return glance.counts().log_bytes
    except StoreError:
        return 0


def _compacted(before: int, glance: Glance) -> int:
    return before - _log_bytes(glance)
