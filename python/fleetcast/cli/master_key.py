"""`fleetcast master-key …`."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click

from fleetcast.cli.common import Run, with_run
from fleetcast.installation.turning import turn


@click.group("master-key")
def master_key() -> None:
    """Change the master key."""


@master_key.command()
@click.option(
    "--to",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Take the new key from FILE, which is made if it is missing.",
)
@with_run
def rotate(run: Run, file: Path | None) -> None:
    """Change the master key, whether the service runs or not.

    A new master key wraps every tenant's key and seals every record. API keys, tokens and data
    stay good. The old key opens nothing afterwards, except earlier backups. If the command is
    interrupted, run it again: it goes on where it was.

    If there are many nodes, run the command on each. The last run completes the change.

    With --to the settings must name FILE, or security.master_key_command must print its key, before
    the change is complete: then run the command again.

    Example: fleetcast master-key rotate
    """
    done = turn(run.data, os.environ, None if file is None else file.absolute())
    lines = [f"Key {done.new_id} wraps the keys of {done.tenants} planes and seals all records."]
    lines += [f"The key file of {name} is damaged." for name in done.unreadable]
    if done.is_complete:
        lines += [f"Key {done.old_id} opens nothing but backups that were made before."]
    elif done.nodes_left:
        lines += [f"Run the command on {name} as well." for name in done.nodes_left]
    else:
        lines += [
            f"Key {done.old_id} still opens everything.",
            f"Let the settings name the key in {done.file}, restart the service,",
            "and run the command again.",
        ]
    lines += [f"Keep a copy of {done.file} elsewhere."]
    run.answer(asdict(done) | {"file": str(done.file)}, "\n".join(lines))
