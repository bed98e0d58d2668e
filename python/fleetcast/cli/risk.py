"""`fleetcast forecast risk`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleetcast.cli.common import INSTANT, Run, table, with_run
from fleetcast.cli.family_options import FAMILY, HISTORY
from fleetcast.errors import OperatorError
from fleetcast.forecast.families import FAMILIES

if TYPE_CHECKING:
    from pathlib import Path


@click.command("risk")
@FAMILY
@HISTORY
@click.option("--at", "at_ns", type=INSTANT, required=True, help="Issue time, ISO 8601.")
@click.option("--below", "low", type=float, metavar="VALUE", help="Threshold in dB or bytes.")
@click.option("--above", "high", type=float, metavar="VALUE", help="The same, for values above it.")
@with_run
def risk(
    run: Run, name: str, source: Path, at_ns: int, low: float | None, high: float | None
) -> None:
    """Probabilities that values lie beyond a threshold at each horizon."""
    # Imports at the top of the file would slow down all commands.
    import numpy as np

    from fleetcast.forecast.backtest import backtest
    from fleetcast.forecast.history import read_history
    from fleetcast.forecast.model import Forecaster
    from fleetcast.forecast.risk import below

    thresholds = [value for value in (low, high) if value is not None]
    if len(thresholds) != 1 or not np.isfinite(thresholds[0]):
        message = "needs a number for either --below or --above"
        raise OperatorError(message)
    family = FAMILIES[name]
    forecaster = Forecaster(family)
    entities = read_history(source, family)
    answers = backtest(forecaster, entities, np.array([at_ns]), lambda _: None).answers
    quantiles = answers.select(family.quantile_names).to_numpy()
    probabilities = below(family, quantiles, thresholds[0])
    if high is not None:
        probabilities = 1 - probabilities
    columns = (answers[name] for name in ("entity_id", "horizon_minutes", "error"))
    rows = [
        {
            "entity_id": entity,
            "horizon_minutes": horizon,
            "probability": probability if error is None else None,
            "error": error,
        }
        for entity, horizon, error, probability in zip(
            *columns, probabilities.tolist(), strict=True
        )
    ]
    document = {
        "family": family.name,
        "model_version": forecaster.metadata.model_version,
        "below": low,
        "above": high,
        "risks": rows,
    }
    run.answer(document, _text(rows))


def _text(rows: list[dict[str, Any]]) -> str:
    cells = [
        [
            row["entity_id"],
            f"{row['horizon_minutes']}m",
            None if row["error"] else f"{row['probability']:.4f}",
            row["error"],
        ]
        for row in rows
    ]
    return table(["entity", "horizon", "probability", "error"], cells)
