"""`fleetcast compact`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from fleetcast.cli.common import Run, table, with_run

if TYPE_CHECKING:
    from fleetcast.engine import Compacted, Plane

_PATIENCE_SECONDS = 60.0
_RETRY_SECONDS = 0.1


@click.command()
@click.argument("names", nargs=-1, metavar="[TENANT]...")
@with_run
def compact(run: Run, names: tuple[str, ...]) -> int:
    """Compact the stores of some tenants, or of all, now.

    While `serve` runs this is hardly ever needed: it compacts by itself.
    """
    rows: list[dict[str, object]] = []
    with run.opened() as installation:
        everyone = installation.tenants.all()
        for tenant in [installation.tenants.get(name) for name in names] or everyone:
            plane = installation.engine.plane(tenant.account_id, tenant.name)
            done = _patiently(plane)
            row: dict[str, object] = {"tenant": tenant.name, "busy": done is None}
            for name in ("blocks", "merged", "expired", "bytes_written"):
                row[name] = None if done is None else getattr(done, name)
            rows.append(row)
            installation.engine.release(tenant.account_id)
    header = ("tenant", "busy", "blocks", "merged", "expired", "bytes_written")
    cells = [[row[name] for name in header] for row in rows]
    run.answer({"tenants": rows}, table(header, cells))
    return 1 if any(row["busy"] for row in rows) else 0


def _patiently(plane: Plane) -> Compacted | None:
    """Waits for another compactor, which has nearly always done by then."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        done = plane.compact(whole=True)
        if done is not None or time.monotonic() >= until:
            return done
        time.sleep(_RETRY_SECONDS)
