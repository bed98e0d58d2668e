"""`fleetcast provision`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from fleetcast.accounts.declaration import read_declaration
from fleetcast.accounts.provision import Provisioner
from fleetcast.cli.common import Run, with_run


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@with_run
def provision(run: Run, file: Path) -> None:
    """Make the tenants and keys that FILE declares; repeat it as often as you like.

    Example: fleetcast provision tenants.toml
    """
    declared = read_declaration(file)
    with run.opened() as installation:
        environment = installation.settings.service.environment
        provisioner = Provisioner(installation.tenants, installation.keys, environment)
        result = provisioner.apply(declared)
    for warning in result.warnings:
        click.echo(f"fleetcast: warning: {warning}", err=True)
    lines = [f"tenant {row['tenant']}: {row['action']}" for row in result.tenants]
    for row in result.keys:
        shown = row.get("key_file") or row.get("key") or ""
        lines.append(f"key {row['name']} of {row['tenant']}: {row['action']} {shown}".rstrip())
    run.answer(asdict(result), "\n".join(lines))
