"""`fleetcast init`."""

from __future__ import annotations

import os

import click

from fleetcast.cli.common import Run, with_run
from fleetcast.installation.making import make_data_directory


@click.command()
@click.option("--environment", default="sandbox", show_default=True, help="Environment served.")
@with_run
def init(run: Run, environment: str) -> None:
    """Make a data directory: settings, master key, certificate, empty stores."""
    make_data_directory(run.data, environment, os.environ)
    root = run.data.root
    document = {
        "data": str(root),
        "environment": environment,
        "grpc_ca": str(run.data.tls / "ca.pem"),
    }
    run.answer(document, f"Made {root} for {environment}. Keep a copy of its master key safe.")
