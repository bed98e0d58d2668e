"""`fleetcast delete`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from fleetcast.cli.common import INSTANT, Run, patiently, tenant_names, with_run
from fleetcast.engine import format_time
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from fleetcast.engine import Deleted


@click.command()
@click.option(
    "--tenant",
    required=True,
    metavar="NAME",
    shell_complete=tenant_names,
    help="Tenant of the rows.",
)
@click.option("--entity", "entities", multiple=True, help="Only rows of this entity; repeatable.")
@click.option(
    "--measurement",
    "measurements",
    multiple=True,
    help="Only rows of this measurement; repeatable.",
)
@click.option("--start", type=INSTANT, required=True, help="First time, UTC without an offset.")
@click.option("--end", type=INSTANT, required=True, help="Time after the last rows.")
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@click.option("--yes", is_flag=True, help="Confirm: the rows cannot be brought back.")
@with_run
def delete(
    run: Run,
    tenant: str,
    entities: tuple[str, ...],
    measurements: tuple[str, ...],
    start: int,
    end: int,
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete the stored rows of a range.

    Reads do not see the rows from then on. The next compaction removes them from disk. Rows written
    later are not touched. To correct a range, delete it and import it again.

    Example: fleetcast delete --tenant acme --entity l1 --start 2026-03-01 --end 2026-03-02
    --dry-run
    """
    if not (yes or dry_run):
        message = f"this deletes rows of {tenant}: look with --dry-run, then repeat with --yes"
        raise click.ClickException(message)
    with run.opened_to_read() if dry_run else run.opened() as installation:
        owner = installation.tenants.get(tenant)
        plane = installation.engine.plane(owner.account_id, owner.name)
        names = {"measurements": measurements or None, "entities": entities or None}
        attempt = partial(plane.delete, start, end, **names, dry_run=dry_run)
        try:
            deleted = patiently(attempt)
        except ValueError as error:
            raise OperatorError(str(error)) from error
        if deleted is None:
            message = (
                f"the store of {tenant} is being compacted: nothing is deleted, try again later"
            )
            raise OperatorError(message)
        if not dry_run:
            # The log does not name measurements and entities, because the store seals their names.
            installation.stores.audit()(
                "rows deleted",
                tenant=owner.name,
                account_id=owner.account_id,
                start=format_time(start),
                end=format_time(end),
                measurements_named=len(measurements),
                entities_named=len(entities),
                rows=deleted.rows,
                hours=deleted.hours,
            )
    document = {"tenant": owner.name, "dry_run": dry_run, **_document(deleted)}
    run.answer(document, _text(deleted, dry_run=dry_run))


def _document(deleted: Deleted) -> dict[str, object]:
    first_ns, last_ns = deleted.first_ns, deleted.last_ns
    return {
        "rows": deleted.rows,
        "hours": deleted.hours,
        "entities": deleted.entities,
        "measurements": deleted.measurements,
        "first": None if first_ns is None else format_time(first_ns),
        "last": None if last_ns is None else format_time(last_ns),
    }


def _text(deleted: Deleted, *, dry_run: bool) -> str:
    if deleted.first_ns is None or deleted.last_ns is None:
        if deleted.hours == 0:
            return "No stored row lies there."
        verb = "Would delete" if dry_run else "Deleted"
        return f"{verb} {deleted.hours} hours whose rows have expired."
    span = f"{format_time(deleted.first_ns)} to {format_time(deleted.last_ns)}"
    what = f"{deleted.rows} rows of {deleted.entities} entities, {span}"
    measurements = ", ".join(deleted.measurements)
    if dry_run:
        return f"Would delete {what}, of {measurements}."
    return f"Deleted {what}, of {measurements}. The next compaction removes them from disk."
