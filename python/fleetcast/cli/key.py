"""`fleetcast key …`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from fleetcast.accounts import SCOPES
from fleetcast.cli.common import DURATION, Run, instant, key_ids, table, tenant_names, with_run

if TYPE_CHECKING:
    from fleetcast.accounts import IssuedKey
    from fleetcast.engine import ApiKey


@click.group()
def key() -> None:
    """Issue, list and end API keys."""


@key.command()
@click.argument("tenant", shell_complete=tenant_names)
@click.option(
    "--scope", "scopes", multiple=True, required=True, help=f"One of {', '.join(SCOPES)}."
)
@click.option("--expires", type=DURATION, help="Lifetime, such as 90d; unlimited by default.")
@click.option(
    "--name", default="", show_default=False, help="Name that tells the purpose of the key."
)
@click.option("--environment", help="Environment of the key; by default this installation's.")
@with_run
def create(
    run: Run,
    tenant: str,
    scopes: tuple[str, ...],
    expires: int | None,
    name: str,
    environment: str | None,
) -> None:
    """Issue a key; its text is shown only now.

    Example: fleetcast key create acme --scope telemetry:write --expires 90d
    """
    with run.opened() as installation:
        issued = installation.keys.create(
            tenant,
            scopes=scopes,
            environment=environment or installation.settings.service.environment,
            name=name,
            lifetime_seconds=expires,
        )
    _print_issued(run, issued)


@key.command("list")
@click.argument("tenant", shell_complete=tenant_names)
@with_run
def list_(run: Run, tenant: str) -> None:
    """List a tenant's keys, also ended keys."""
    with run.opened_to_read() as installation:
        rows = [_document(each) for each in installation.keys.all(tenant)]
    header = ("key_id", "name", "status", "environment", "scopes", "created_at", "expires_at")
    cells = [[_cell(row[name]) for name in header] for row in rows]
    run.answer({"keys": rows}, table(header, cells))


@key.command()
@click.argument("key_id", shell_complete=key_ids)
@with_run
def revoke(run: Run, key_id: str) -> None:
    """End a key at once."""
    with run.opened() as installation:
        ended = installation.keys.revoke(key_id)
    run.answer(_document(ended), f"Revoked key {key_id} of {ended.tenant}.")


@key.command()
@click.argument("key_id", shell_complete=key_ids)
@click.option(
    "--overlap",
    type=DURATION,
    default="24h",
    help="How long the old key stays good.",
)
@with_run
def rotate(run: Run, key_id: str, overlap: int) -> None:
    """Issue a key with the same rights; its text is shown only now.

    The old key stays valid for the overlap, so that clients can change to the new key.

    Example: fleetcast key rotate uwqpcooqs74v --overlap 24h
    """
    with run.opened() as installation:
        issued = installation.keys.rotate(key_id, overlap_seconds=overlap)
    _print_issued(run, issued)


def _document(record: ApiKey) -> dict[str, object]:
    return {
        "key_id": record.key_id,
        "tenant": record.tenant,
        "name": record.name,
        "status": record.ended(int(time.time())) or "active",
        "environment": record.environment,
        "scopes": record.scopes,
        "created_at": instant(record.created_at),
        "expires_at": instant(record.expires_at),
        "revoked_at": instant(record.revoked_at),
    }


def _cell(value: object) -> object:
    return ",".join(value) if isinstance(value, list) else value


def _print_issued(run: Run, issued: IssuedKey) -> None:
    text = str(issued.text)
    run.answer(
        {"key": text, **_document(issued.record)}, f"{text}\n(key id {issued.record.key_id})"
    )
