"""`fleetcast stats`."""

from __future__ import annotations

import click

from fleetcast.cli.common import Run, table, with_run


@click.command()
@with_run
def stats(run: Run) -> None:
    """Show what each tenant has stored."""
    rows: list[dict[str, object]] = []
    with run.opened_to_read() as installation:
        for tenant in installation.tenants.all():
            plane = installation.engine.plane(tenant.account_id, tenant.name)
            held, kept = plane.stats(), plane.kept_hours()
            values = held.stored_values
            per_value = round(held.stored_bytes / values, 3) if values else None
            rows.append(
                {
                    "tenant": tenant.name,
                    "rows": held.stored_rows,
                    "values": values,
                    "series": held.series,
                    "segments": held.segments,
                    "stored_bytes": held.stored_bytes,
                    "bytes_per_value": per_value,
                    "log_bytes": held.log_file_bytes,
                    "segment_bytes": held.segment_bytes,
                    "names_bytes": held.names_bytes,
                    "free_bytes": held.free_bytes,
                    "kept_hours": kept.hours,
                    "kept_hours_bytes": kept.bytes,
                    "old_key_bytes": plane.old_key_bytes(),
                }
            )
            installation.engine.release(tenant.account_id)
    header = (
        "tenant",
        "rows",
        "values",
        "series",
        "segments",
        "stored_bytes",
        "bytes_per_value",
        "kept_hours",
    )
    cells = [[row[name] for name in header] for row in rows]
    turning = [
        f"\n{row['tenant']}: {row['old_key_bytes']} bytes are left under an old data key"
        for row in rows
        if row["old_key_bytes"] is not None
    ]
    run.answer({"tenants": rows}, table(header, cells) + "".join(turning))
