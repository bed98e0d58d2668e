"""`fleetcast tenant …`."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleetcast.accounts import PLAN_DEFAULT, PLANS, RECEIPT_KEY
from fleetcast.cli.common import (
    DURATION,
    Run,
    TextType,
    instant,
    patiently,
    table,
    tenant_names,
    with_run,
)
from fleetcast.durations import format_duration, parse_duration, parse_years
from fleetcast.errors import OperatorError, StoreError
from fleetcast.installation.erasing import erase
from fleetcast.installation.rekeying import begin_turn
from fleetcast.security.receipts import read_receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleetcast.engine import Tenant
    from fleetcast.installation.opening import Installation

_OFF = "off"


def _or_off(read: Callable[[str], int]) -> Callable[[str], int | str]:
    return lambda text: text if text == _OFF else read(text)


RETENTION = TextType("retention", _or_off(parse_duration))
"""A duration, in seconds, or `off` to keep everything."""

KEEP_HOURS = TextType("keep-hours", _or_off(parse_years))
"""A duration, in seconds, or `off` to keep no hours."""


@click.group()
def tenant() -> None:
    """Make, show and change tenants."""


@tenant.command()
@click.argument("name")
@click.option("--plan", type=click.Choice(PLANS), default=PLAN_DEFAULT)
@click.option("--no-live-ingest", is_flag=True, help="Refuse writes over the network.")
@click.option("--retention", type=DURATION, help="Keep rows this long, such as 400d.")
@with_run
def create(run: Run, name: str, plan: str, no_live_ingest: bool, retention: int | None) -> None:
    """Make a tenant and its store.

    Example: fleetcast tenant create acme --retention 400d
    """
    with run.opened() as installation:
        created = installation.tenants.create(
            name, plan=plan, live_ingest=not no_live_ingest, retention_seconds=retention
        )
    document = {"tenant": created.name, "account_id": created.account_id}
    run.answer(document, f"Made tenant {created.name}, account {created.account_id}.")


@tenant.command("list")
@with_run
def list_(run: Run) -> None:
    """List all tenants."""
    with run.opened_to_read() as installation:
        rows = [_document(each) for each in installation.tenants.all()]
    header = ("tenant", "status", "plan", "live_ingest", "retention", "created_at")
    run.answer({"tenants": rows}, table(header, [[row[name] for name in header] for row in rows]))


@tenant.command()
@click.argument("name", shell_complete=tenant_names)
@with_run
def show(run: Run, name: str) -> None:
    """Show a tenant."""
    with run.opened_to_read() as installation:
        _print(run, installation, name)


@tenant.command("set")
@click.argument("name", shell_complete=tenant_names)
@click.option("--live-ingest", type=click.Choice(["on", "off"]))
@click.option("--plan", type=click.Choice(PLANS))
@click.option("--retention", type=RETENTION, help='A duration, or "off" to keep all rows.')
@click.option(
    "--keep-hours",
    type=KEEP_HOURS,
    help='How long hourly values are kept, such as 5y, or "off": they go with their rows.',
)
@with_run
def set_(
    run: Run,
    name: str,
    live_ingest: str | None,
    plan: str | None,
    retention: int | str | None,
    keep_hours: int | str | None,
) -> None:
    """Change a tenant.

    Hourly values that are kept longer than their rows answer the windows of an hour.

    Example: fleetcast tenant set acme --retention 30d --keep-hours 5y
    """
    changes: dict[str, object] = {}
    if live_ingest is not None:
        changes["live_ingest"] = live_ingest == "on"
    if plan is not None:
        changes["plan"] = plan
    if retention is not None:
        changes["retention_seconds"] = None if retention == _OFF else retention
    if not changes and keep_hours is None:
        message = "Give at least one of --live-ingest, --plan, --retention, --keep-hours."
        raise click.UsageError(message)
    with run.opened() as installation:
        if changes:
            installation.tenants.change(name, **changes)
        if keep_hours is not None:
            _keep(installation, name, None if keep_hours == _OFF else int(keep_hours))
        _print(run, installation, name)


def _keep(installation: Installation, name: str, seconds: int | None) -> None:
    attempt = partial(installation.tenants.keep_hours, name, seconds)
    if patiently(lambda: attempt() or None) is None:
        message = (
            f"the store of {name} is being compacted: its hours are as before, try again later"
        )
        raise OperatorError(message)


@tenant.command()
@click.argument("name", shell_complete=tenant_names)
@with_run
def disable(run: Run, name: str) -> None:
    """Refuse every request of a tenant."""
    with run.opened() as installation:
        installation.tenants.change(name, disabled=True)
        _print(run, installation, name)


@tenant.command()
@click.argument("name", shell_complete=tenant_names)
@with_run
def enable(run: Run, name: str) -> None:
    """Serve a disabled tenant again."""
    with run.opened() as installation:
        installation.tenants.change(name, disabled=False)
        _print(run, installation, name)


@tenant.command()
@click.argument("name", shell_complete=tenant_names)
@with_run
def rekey(run: Run, name: str) -> None:
    """Give a tenant a new data key.

    New bytes are sealed with it at once. Compaction seals the older bytes anew, and drops the old
    key when no bytes are left under it. `fleetcast stats` shows how much is left.

    Example: fleetcast tenant rekey acme
    """
    with run.opened() as installation:
        left = patiently(lambda: begin_turn(installation, name))
    if left is None:
        message = f"the store of {name} is being compacted: try again later"
        raise OperatorError(message)
    text = f"Tenant {name} has a new data key. {left} bytes are left under the old key."
    run.answer({"tenant": name, "old_key_bytes": left}, text)


@tenant.command()
@click.argument("name", shell_complete=tenant_names)
@click.option("--yes", is_flag=True, help="Confirm: the data cannot be brought back.")
@with_run
def delete(run: Run, name: str, yes: bool) -> None:
    """Destroy a tenant's data, its keys and its record.

    The answer is a receipt: what was destroyed, where and when. --json gives it signed, and so does
    the audit log. `fleetcast tenant receipt` checks the signature.
    """
    if not yes:
        message = f"this destroys all data of {name}: repeat with --yes"
        raise click.ClickException(message)
    with run.opened() as installation:
        document = erase(run.data, installation, name)
    receipt = document["receipt"]
    names = {name: receipt[name] for name in ("tenant", "account_id")}
    text = f"Deleted tenant {names['tenant']}, account {names['account_id']}."
    run.answer({**names, "deleted": True, **document}, f"{text}\n{_receipt_text(receipt)}")


@tenant.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@with_run
def receipt(run: Run, file: Path) -> None:
    """Check the receipt of a deletion.

    FILE has the answer of `fleetcast tenant delete --json`, or its line of the audit log.

    Example: fleetcast tenant receipt receipt.json
    """
    with run.opened_to_read() as installation:
        found = read_receipt(file, installation.store.secret(RECEIPT_KEY))
    text = f"This installation signed the receipt of tenant {found['tenant']}."
    run.answer(found, f"{text}\n{_receipt_text(found)}")


def _receipt_text(receipt: Mapping[str, Any]) -> str:
    header = ("what", "where", "files", "bytes", "linked_files", "is_gone")
    rows = [[part[name] for name in header] for part in receipt["destroyed"]]
    at = f"Data key destroyed at: {receipt['key_destroyed_at'] or 'an earlier run'}"
    return f"{at}\n{table(header, rows)}"


def _document(shown: Tenant) -> dict[str, object]:
    retention = shown.retention_seconds
    return {
        "tenant": shown.name,
        "account_id": shown.account_id,
        "status": shown.status,
        "plan": shown.plan,
        "live_ingest": shown.live_ingest,
        "retention": None if retention is None else format_duration(retention),
        "created_at": instant(shown.created_at),
    }


def _print(run: Run, installation: Installation, name: str) -> None:
    shown = installation.tenants.get(name)
    kept = None
    with suppress(StoreError):  # `verify` says what is wrong with a store
        kept = installation.engine.plane(shown.account_id, name).kept_hours().seconds
    document = {**_document(shown), "keep_hours": None if kept is None else format_duration(kept)}
    width = max(map(len, document))
    lines = [
        f"{name.ljust(width)}  {'-' if value is None else value}"
        for name, value in document.items()
    ]
    run.answer(document, "\n".join(lines))
