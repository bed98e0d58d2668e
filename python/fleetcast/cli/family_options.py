"""Options of the commands that ask a family of forecasts about a file of history."""

from __future__ import annotations

from pathlib import Path

import click

from fleetcast.forecast.families import FAMILIES

FAMILY = click.option("--family", "name", type=click.Choice(list(FAMILIES)), required=True)
HISTORY = click.option(
    "--input",
    "source",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=True,
    help="Parquet or CSV: entity_id, time (UTC) and the family's input fields.",
)
