"""`fleetcast serve`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from fleetcast.cli.common import Run, with_run
from fleetcast.cli.settings import read_assignments, set_option
from fleetcast.config import Override

if TYPE_CHECKING:
    from fleetcast.config import Settings


@click.command()
@click.option("--http", metavar="HOST:PORT", help="Public HTTP listener.")
@click.option("--grpc", metavar="HOST:PORT|off", help="gRPC ingest listener.")
@click.option("--admin", metavar="HOST:PORT|off", help="Private listener.")
@click.option("--workers", type=int, metavar="N", help="HTTP worker processes.")
@click.option("--threads", type=int, metavar="N", help="Threads of an HTTP worker.")
@set_option
@with_run
def serve(
    run: Run,
    http: str | None,
    grpc: str | None,
    admin: str | None,
    workers: int | None,
    threads: int | None,
    assignments: tuple[str, ...],
) -> None:
    """Run the service until SIGTERM or Ctrl-C.

    Example: fleetcast serve --http 0.0.0.0:8080
    """
    # An import at the top of the file would slow down the list of commands.
    from fleetcast.supervisor.supervisor import serve as run_service
    from fleetcast.supervisor.terminal_child import text_on_terminal

    given = {
        "http.address": ("--http", http),
        "grpc.address": ("--grpc", grpc),
        "admin.address": ("--admin", admin),
        "http.workers": ("--workers", workers),
        "http.threads": ("--threads", threads),
    }
    options = [
        Override(name, str(value), option)
        for name, (option, value) in given.items()
        if value is not None
    ]
    overrides = [*read_assignments(assignments), *options]

    def read() -> Settings:
        return run.data.settings(os.environ, overrides).settings

    with text_on_terminal():
        run_service(run.data, read, click.echo)
