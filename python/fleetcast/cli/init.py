"""`fleetcast init`."""

from __future__ import annotations

import os

import click

from fleetcast.cli.common import Run, with_run
from fleetcast.installation.making import make_data_directory


@click.command()
@click.option("--environment", default="sandbox", show_default=True, help="Environment served.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Name or IP address that gRPC clients know this machine by; repeat it.",
)
@with_run
def init(run: Run, environment: str, hosts: tuple[str, ...]) -> None:
    """Make a data directory: settings, master key, certificate, empty stores."""
    make_data_directory(run.data, environment, os.environ, hosts)
    root = run.data.root
    document = {
        "data": str(root),
        "environment": environment,
        "grpc_ca": str(run.data.tls / "ca.pem"),
    }
    run.answer(document, f"Made {root} for {environment}. Keep a copy of its master key safe.")
