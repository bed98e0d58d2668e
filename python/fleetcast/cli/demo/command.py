"""`fleetcast demo`."""

from __future__ import annotations

from pathlib import Path

import click

from fleetcast.cli.common import Run, with_run


@click.command()
@click.option("--once", is_flag=True, help="End after the tour.")
@click.option(
    "--sample",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Load the real files of this folder instead of a generated fleet.",
)
@click.option("--verbose", is_flag=True, help="Print each answer whole.")
@with_run
def demo(run: Run, once: bool, sample: Path | None, verbose: bool) -> None:
    """Start the whole service on a temporary directory, load a fleet, ask every endpoint.

    The data directory of --data is not touched.
    """
    # An import at the top of the file would slow down the list of commands.
    from fleetcast.cli.demo.demonstration import demonstrate

    demonstrate(run, once=once, sample=sample, verbose=verbose)
