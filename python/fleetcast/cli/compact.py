"""`fleetcast compact`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from fleetcast.cli.common import Run, patiently, table, tenant_names, with_run
from fleetcast.cli.progress import bytes_of, progress

if TYPE_CHECKING:
    from fleetcast.engine import Glance


_COUNTS = ("blocks", "merged", "expired", "held", "bytes_written")
_HELD = (
    "fleetcast: nothing of the tenants with held segments has expired: the clock is more than a "
    "day ahead of their newest write. If it is right, run this again with --trust-clock, or let "
    "`fleetcast serve` run for an hour."
)


@click.command()
@click.argument("names", nargs=-1, metavar="[TENANT]...", shell_complete=tenant_names)
@click.option(
    "--trust-clock",
    is_flag=True,
    help="Remove rows older than their retention, even if the clock is more than a day ahead of "
    "the newest write.",
)
@with_run
def compact(run: Run, names: tuple[str, ...], *, trust_clock: bool) -> int:
    """Compact the stores of some tenants, or of all, now.

    While `serve` runs this is rarely needed, because `serve` compacts too. Segments that are `held`
    have rows older than their retention by a clock that may have jumped.

    Example: fleetcast compact acme
    """
    rows: list[dict[str, object]] = []
    with run.opened() as installation:
        engine = installation.engine
        tenants = installation.tenants
        chosen = [tenants.get(name) for name in names] or tenants.all()
        glances = {tenant.name: engine.glance(tenant.account_id) for tenant in chosen}
        logs = {name: bytes_of(glance, "log_bytes") for name, glance in glances.items()}
        with progress("compacting", sum(logs.values())) as bar:
            for tenant in chosen:
                plane = engine.plane(tenant.account_id, tenant.name)
                before, glance = logs[tenant.name], glances[tenant.name]
                done = bar.step(
                    partial(patiently, partial(plane.compact, whole=True, trust_clock=trust_clock)),
                    before,
                    partial(_compacted, before, glance),
                )
                row: dict[str, object] = {"tenant": tenant.name, "busy": done is None}
                for name in _COUNTS:
                    row[name] = None if done is None else getattr(done, name)
                rows.append(row)
                engine.release(tenant.account_id)
    header = ("tenant", "busy", *_COUNTS)
    cells = [[row[name] for name in header] for row in rows]
    run.answer({"tenants": rows}, table(header, cells))
    if any(row["held"] for row in rows):
        click.echo(_HELD, err=True)
    return 1 if any(row["busy"] for row in rows) else 0


def _compacted(before: int, glance: Glance) -> int:
    return before - bytes_of(glance, "log_bytes")
