"""`fleetcast describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleetcast.cli.common import Run, table, tenant_names, with_run
from fleetcast.engine import format_time

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN_MAX = 5


@click.command("describe")
@click.argument("tenant", shell_complete=tenant_names)
@click.option("--measurement", help="Only this measurement.")
@click.option("--entity", help="Only this entity_id.")
@with_run
def describe(run: Run, tenant: str, measurement: str | None, entity: str | None) -> None:
    """Say what TENANT has stored: measurements, entities, tags, fields and times.

    No rows are read. Rows that were deleted or are older than the retention count until the next
    compaction.

    Example: fleetcast describe acme --measurement link
    """
    with run.opened_to_read() as installation:
        record = installation.tenants.get(tenant)
        plane = installation.engine.plane(record.account_id, record.name)
        found = plane.describe(measurement, entity)["measurements"]
    document = {"tenant": record.name, "measurements": {n: _dated(c) for n, c in found.items()}}
    parts = [_text(name, contents) for name, contents in found.items()]
    run.answer(document, "\n\n".join(parts) or "nothing is stored")


def _dated(contents: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in contents.items() if name not in {"first_ns", "last_ns"}}
    return rest | {"first": _time(contents["first_ns"]), "last": _time(contents["last_ns"])}


def _time(time_ns: int | None) -> str | None:
    return None if time_ns is None else format_time(time_ns)


def _text(name: str, contents: Mapping[str, Any]) -> str:
    first, last = _time(contents["first_ns"]), _time(contents["last_ns"])
    rows = [
        ("rows", contents["rows"]),
        ("time", f"{first} to {last}" if first else None),
        ("series", contents["series"]),
        ("entities", _some(contents["entities"])),
        *[(f"tag {tag}", _some(values)) for tag, values in contents["tags"].items()],
        *[(f"field {field}", kind) for field, kind in contents["fields"].items()],
    ]
    _, *lines = table(("", ""), rows).splitlines()  # the first line is the header
    return "\n".join([name, *(f"  {line}" for line in lines)])


def _some(values: Mapping[str, Any]) -> str:
    """Returns the number of values, and the first values."""
    shown = ", ".join(values["first"][:_SHOWN_MAX])
    more = ", ..." if values["count"] > _SHOWN_MAX else ""
    return f"{values['count']}: {shown}{more}" if shown else str(values["count"])
