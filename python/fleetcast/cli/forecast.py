"""`fleetcast forecast`: models against history."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from fleetcast.cli.common import DURATION, INSTANT, Run, table, with_run
from fleetcast.cli.family_options import FAMILY, HISTORY
from fleetcast.cli.release import release
from fleetcast.cli.risk import risk
from fleetcast.errors import OperatorError
from fleetcast.forecast.families import FAMILIES, SNR
from fleetcast.output_file import output_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.features.path import Track
    from fleetcast.forecast.outages import OutageReport
    from fleetcast.forecast.rows import Rows


class _When(TypedDict):
    """Origins: nanoseconds since 1970, and seconds from an origin to the next."""

    start: int
    end: int
    every: int
    calibrate_until: int | None


@click.group()
def forecast() -> None:
    """Forecasts: test them against history, train models, choose which model answers."""


forecast.add_command(release)
forecast.add_command(risk)


@forecast.command("backtest")
@FAMILY
@HISTORY
@click.option("--start", type=INSTANT, required=True, help="First origin, ISO 8601.")
@click.option("--end", type=INSTANT, required=True, help="Last origin, itself included.")
@click.option("--every", type=DURATION, required=True, help="Time between origins, such as 60m.")
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Parquet."
)
@click.option(
    "--elements",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Two-line elements of the satellites that links' entity_ids name.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(min=0, min_open=True),
    metavar="DB",
    help="Report outages: links this many dB below their median.",
)
@click.option(
    "--calibrate-until",
    type=INSTANT,
    help="Earlier origins set the levels of alarm; by default the first half of the origins.",
)
@with_run
def backtest_(
    run: Run,
    name: str,
    source: Path,
    output: Path,
    elements: Path | None,
    threshold: float | None,
    **when: Unpack[_When],
) -> None:
    """Answer at every origin as the service would have, from earlier rows."""
    # Imports at the top of the file would slow down all commands.
    from fleetcast.forecast.backtest import backtest, origins, score_rows
    from fleetcast.forecast.history import read_history
    from fleetcast.forecast.model import Forecaster
    from fleetcast.forecast.outages import report

    family = FAMILIES[name]
    _refuse_no_folder(output)
    asked = origins(when["start"], when["end"], when["every"] * 1_000_000_000)
    if threshold is not None and family is not SNR:
        message = "--threshold is of links: --family snr"
        raise OperatorError(message)
    forecaster = Forecaster(family)
    entities = read_history(source, family)
    tracks = None if elements is None else _tracks(elements)
    with click.progressbar(
        length=len(entities), label="forecasting", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        result = backtest(forecaster, entities, asked, bar.update, tracks, threshold)
    with output_file(output) as file:
        result.answers.write_parquet(file)
    rows = score_rows(family, result.scores)
    metadata = forecaster.metadata
    document: dict[str, object] = {
        "family": family.name,
        "model_version": metadata.model_version,
        "feature_view_id": metadata.feature_view_id,
        "entities": len(entities),
        "origins": len(asked),
        "rows": result.answers.height,
        "output": str(output),
        "scores": rows,
    }
    text = _text(family, rows)
    if threshold is not None:
        until_ns = when["calibrate_until"] or (when["start"] + when["end"]) // 2
        found = report(result.watches, when["every"] / 60, until_ns)
        document["outages"] = {"threshold_db": threshold, **asdict(found)}
        text += "\n\n" + _outages_text(found)
    run.answer(document, text)


def _refuse_no_folder(output: Path) -> None:
    """Raises `OperatorError` before the long work if the output has no folder."""
    if not output.parent.is_dir():
        message = f"{output.parent}: no such directory"
        raise OperatorError(message)


@forecast.command("train")
@FAMILY
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    metavar="DIR",
    help="Directory of the sets: links/, pools/.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    metavar="DIR",
    help="Folder for FAMILY.onnx, its card FAMILY.md, and FAMILY-judged.onnx.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0)
@click.option("--json", "as_json", is_flag=True, help="Answer with one JSON document.")
def train(name: str, data: Path, output: Path, seed: int, as_json: bool) -> None:
    """Train a model. The same data and seed give the same file.

    FAMILY-judged.onnx did not learn from the days that the card judges by.
    """
    from fleetcast.forecast.training.card import card
    from fleetcast.forecast.training.learn import learned

    family = FAMILIES[name]
    model = learned(family, data, seed, lambda line: click.echo(line, err=True))
    output.mkdir(parents=True, exist_ok=True)
    file = output / f"{name}.onnx"
    text = card(model)
    for path, content in (
        (file, model.content),
        (file.with_suffix(".md"), text.encode()),
        (output / f"{name}-judged.onnx", model.judged),
    ):
        with output_file(path) as target:
            target.write(content)
    document = {
        "family": name,
        "model_version": model.trained.model_version,
        "bytes": len(model.content),
        "output": str(file),
    }
    click.echo(json.dumps(document) if as_json else text)


def _tracks(elements: Path) -> Callable[[str, Rows], Track | None]:
    from fleetcast.forecast.geometry import read_elements
    from fleetcast.forecast.tracks import Tracks

    return Tracks(read_elements(elements)).of


def _text(family: Family, rows: list[dict[str, object]]) -> str:
    header = [
        "horizon",
        "forecast",
        "count",
        "mean pinball",
        "weighted quantile loss",
        *(f"coverage {name}" for name in family.quantile_names),
    ]
    return table(header, [_cells(row) for row in rows])


def _outages_text(found: OutageReport) -> str:
    header = ["forecast", "outages", "missed", "false alarms a link-day", "minutes ahead"]
    rows = [
        [
            who,
            line.outages,
            line.missed,
            None if line.false_alarms is None else f"{line.false_alarms:.2f}",
            None if line.lead_minutes is None else f"{line.lead_minutes:.0f}",
        ]
        for who, line in found.forecasts.items()
    ]
    fewer = found.fewer_missed
    said = "nothing was missed by the last value"
    if fewer is not None:
        said = f"fewer missed by the model: {fewer.share:.0%} ({fewer.low:.0%} to {fewer.high:.0%})"
    return table(header, rows) + "\n" + said


def _cells(row: dict[str, object]) -> list[object]:
    coverage = row["coverage"]
    shares = list(coverage.values()) if isinstance(coverage, dict) else []
    return [
        f"{row['horizon_minutes']}m",
        row["forecast"],
        row["count"],
        *(
            value if value is None else f"{value:.5g}"
            for value in (row["mean_pinball"], row["weighted_quantile_loss"])
        ),
        *(share if share is None else f"{share:.3f}" for share in shares),
    ]
