"""`fleetcast init`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fleetcast.cli.common import Run, with_run
from fleetcast.config import Override
from fleetcast.config.sections import BACKENDS, EMBEDDED
from fleetcast.installation.making import make_data_directory


@click.command()
@click.option("--environment", default="sandbox", help="Environment served.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Name or IP address that gRPC clients know this machine by; repeat it.",
)
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    default=EMBEDDED,
    help="Store of telemetry, tenants and forecasts: on this machine, or shared by many nodes.",
)
@click.option("--database", metavar="URL", help="PostgreSQL, with all hosts (store.database).")
@click.option("--objects", metavar="URL", help="Object store of segments (store.objects).")
@click.option(
    "--master-key",
    "key_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Copy this master key instead of making a new one, to join an installation.",
)
@with_run
def init(
    run: Run,
    environment: str,
    hosts: tuple[str, ...],
    backend: str,
    database: str | None,
    objects: str | None,
    key_file: Path | None,
) -> None:
    """Make a data directory: settings, master key, certificate, empty stores.

    With --backend postgresql the stores are in a database, and the directory is one node of an
    installation. The first `init` makes the installation, later nodes join it.

    Example: fleetcast init --environment production --host telemetry.example.com
    """
    given = {"backend": backend, "database": database, "objects": objects}
    store = [Override(f"store.{name}", text, f"--{name}") for name, text in given.items() if text]
    if backend == EMBEDDED:
        if len(store) > 1:
            message = "--database and --objects need --backend postgresql"
            raise click.UsageError(message)
        store = []
    is_new = make_data_directory(
        run.data, environment, os.environ, hosts, store=store, master_key_file=key_file
    )
    root = run.data.root
    document = {
        "data": str(root),
        "environment": environment,
        "grpc_ca": str(run.data.tls / "ca.pem"),
    }
    made = f"Made {root} for {environment}"
    if not is_new:
        run.answer(document, f"{made}, a node of the installation that was there.")
        return
    run.answer(document, f"{made}. Keep a copy of its master key safe.")
