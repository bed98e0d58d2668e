"""`fleetcast import`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetcast.cli.common import Run, with_run
from fleetcast.importer.reading import CsvColumns, read_csv, read_jsonl
from fleetcast.importer.writing import Importer, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleetcast.importer.reading import Line

_SHOWN_MAX = 20


@click.command("import")
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--tenant", required=True, help="Whose data it becomes.")
@click.option("--format", "form", type=click.Choice(["jsonl", "csv"]), required=True)
@click.option("--measurement", help="CSV: the measurement of every row; no column holds it.")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    default=("entity_id", "entity_type"),
    show_default=True,
    help="CSV: a column that is a tag; repeat it. Given once, the defaults are gone.",
)
@with_run
def import_(
    run: Run,
    files: tuple[Path, ...],
    tenant: str,
    form: str,
    measurement: str | None,
    tags: tuple[str, ...],
) -> int:
    """Load FILES, beside a running server if you like."""
    columns = CsvColumns(measurement, tags)

    def lines(path: Path, advance: Callable[[int], None]) -> Iterator[Line]:
        if form == "csv":
            return read_csv(path, columns, advance)
        return read_jsonl(path, advance)

    sizes = [path.stat().st_size for path in files]  # a missing file stops us before any write
    with run.opened() as installation:
        record = installation.tenants.get(tenant)
        plane = installation.engine.plane(record.account_id, record.name)
        importer = Importer(plane, installation.settings.limits)
        with click.progressbar(
            length=sum(sizes), label="importing", file=sys.stderr, hidden=not sys.stderr.isatty()
        ) as bar:
            for path in files:
                importer.run(str(path), lines(path, bar.update))
    report = importer.report
    document = {
        "tenant": tenant,
        "accepted": report.accepted,
        "rejected": report.rejected,
        "reasons": dict(report.reasons),
        "rejections": report.rejections,
    }
    run.answer(document, _text(report))
    return 1 if report.rejected and not report.accepted else 0


def _text(report: Report) -> str:
    lines = [f"{report.accepted} records imported, {report.rejected} rejected"]
    shown = report.rejections[:_SHOWN_MAX]
    lines += [f"  {row['file']}:{row['line']}: {row['reason']}" for row in shown]
    if report.rejected > len(shown):
        lines.append("in all:")
        lines += [f"  {count} x {reason}" for reason, count in report.reasons.most_common()]
    return "\n".join(lines)
