"""`fleetcast import`."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from fleetcast.cli.common import Run, TextType, tenant_names, with_run
from fleetcast.cli.progress import rate
from fleetcast.engine import MEASUREMENTS
from fleetcast.errors import OperatorError, StoreError
from fleetcast.output_file import output_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from fleetcast.engine import FieldKind, Plane
    from fleetcast.transfer.importing import Import
    from fleetcast.transfer.mapping import ColumnOptions
    from fleetcast.transfer.readers import Reader
    from fleetcast.transfer.report import Report

_SHOWN_MAX = 20
_INTERRUPTED = 130
_UNITS = ["s", "ms", "us", "ns"]


def _pair(text: str) -> tuple[str, str]:
    name, _, other = text.partition("=")
    if not name or not other:
        message = f"{text!r} must be two names with = between them"
        raise ValueError(message)
    return name, other


PAIR = TextType("name=value", _pair)
"""Two names. Example: `site=Haifa`."""


@click.command("import")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--tenant", required=True, shell_complete=tenant_names, help="Tenant that gets the rows."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv", "line-protocol", "parquet"]),
    required=True,
)
@click.option("--time-column", default="time", help="Column of the times.")
@click.option(
    "--time-unit",
    type=click.Choice(_UNITS),
    help="Unit of times that are numbers since 1970; without it times are ISO 8601, and"
    " nanoseconds in line protocol.",
)
@click.option("--entity-column", help="Column that becomes the tag entity_id.")
@click.option("--tag-column", "tag_columns", multiple=True, help="A column that is a tag.")
@click.option("--tag", "tags", type=PAIR, multiple=True, help="A tag that all rows get.")
@click.option(
    "--rename",
    "renames",
    type=PAIR,
    metavar="OLD=NEW",
    multiple=True,
    help="Column OLD becomes the field or tag NEW.",
)
@click.option("--measurement", help="The measurement of all rows; no column holds it.")
@click.option("--check", is_flag=True, help="Say what would happen, and store nothing.")
@click.option(
    "--rejects",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for rejected records with their reasons, as JSON lines.",
)
@click.option(
    "--max-rejects",
    type=click.IntRange(min=0),
    default=0,
    help="Exit with status 1 if more records are rejected.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File by which the same command goes on after a stop, without storing a record twice.",
)
@with_run
def import_(run: Run, files: tuple[str, ...], **options: Any) -> int:
    """Load FILES, also while the service runs; - is standard input.

    Names may end in .gz or .zst. In CSV and Parquet the columns `measurement`, `entity_id` and
    `entity_type` have the meaning of their names. All columns without an option are fields.

    Example: fleetcast import links.csv.gz --tenant acme --format csv --measurement link --tag
    site=Haifa
    """
    from fleetcast.transfer.importing import Import
    from fleetcast.transfer.resume import Resume

    columns = _columns(options)
    if options["check"] and options["resume"]:
        message = "--check stores nothing, so there is nothing to --resume"
        raise OperatorError(message)
    request = _request(files, options)
    opened = run.opened_to_read if options["check"] else run.opened
    with ExitStack() as stack:
        installation = stack.enter_context(opened())
        rejects = stack.enter_context(_opened(options["rejects"]))
        record = installation.tenants.get(options["tenant"])
        plane = installation.engine.plane(record.account_id, record.name)
        resume = stack.enter_context(closing(Resume(options["resume"], plane, request)))
        limits = installation.settings.limits
        work = Import(plane, limits, resume, rejects, check=options["check"])
        stopped = _run(
            work, files, _reader(options, columns, plane), sum(size for _, size in request["files"])
        )
    report = resume.state.report
    if isinstance(stopped, OperatorError) and not report.accepted + report.rejected:
        raise stopped
    verb = "could be imported" if options["check"] else "imported"
    document = {"tenant": record.name, "checked": options["check"], **asdict(report)}
    run.answer(document | {"write_id": resume.state.write_id}, _text(report, verb))
    for warning in _warnings(report):
        click.echo(f"fleetcast: {warning}", err=True)
    if stopped is not None:
        click.echo(f"fleetcast: {_ending(stopped, work, options)}", err=True)
        return _INTERRUPTED if isinstance(stopped, KeyboardInterrupt) else 1
    return 1 if report.rejected > options["max_rejects"] else 0


def _request(files: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Returns files and options, which must be the same when an import goes on.

    Raises `OSError`.
    """
    from fleetcast.transfer.mapping import ColumnOptions
    from fleetcast.transfer.opening import size_of

    names = ["tenant", "form", *(field.name for field in fields(ColumnOptions))]
    sizes = [[name, size_of(name)] for name in files]  # a missing file stops before any write
    request = {name: options[name] for name in names} | {"files": sizes}
    return cast("dict[str, Any]", json.loads(json.dumps(request)))


def _columns(options: dict[str, Any]) -> ColumnOptions:
    """Returns the options of columns. Raises `OperatorError` if the format has no columns."""
    from fleetcast.transfer.mapping import ColumnOptions

    form, unit = options["form"], options["time_unit"]
    given = {field.name: options[field.name] for field in fields(ColumnOptions)}
    pairs = {name: dict(options[name]) for name in ("tags", "renames")}
    columns = ColumnOptions(**given | pairs)
    of_lines = ColumnOptions(time_unit=unit if form == "line-protocol" else None)
    if form in {"jsonl", "line-protocol"} and columns != of_lines:
        message = f"--format {form} has no columns: its records say what they are"
        raise OperatorError(message)
    return columns


def _reader(
    options: dict[str, Any], columns: ColumnOptions, plane: Plane
) -> Callable[[str, Callable[[int], object]], Reader]:
    """Returns the function that makes the reader of a file."""
    from fleetcast.transfer.csv_reader import CsvReader
    from fleetcast.transfer.readers import json_reader, protocol_reader

    def known(measurement: str | None) -> dict[str, FieldKind]:
        found = plane.describe(measurement)["measurements"].values()
        return {name: kind for contents in found for name, kind in contents["fields"].items()}

    match options["form"]:
        case "jsonl":
            return json_reader
        case "csv":
            return lambda name, advance: CsvReader(name, advance, columns, known)
        case "parquet":
            from fleetcast.transfer.parquet_reader import ParquetReader

            return lambda name, advance: ParquetReader(name, advance, columns)
        case _:
            return lambda name, advance: protocol_reader(name, advance, columns.time_unit or "ns")


@contextmanager
def _opened(rejects: Path | None) -> Iterator[BinaryIO | None]:
    if rejects is None:
        yield None
        return
    # An import that goes on keeps the rejects of its earlier run, up to its last saved position.
    if not rejects.exists() or rejects.is_file():
        with rejects.open("r+b" if rejects.exists() else "w+b") as file:
            yield file
    else:
        with output_file(rejects) as file:
            yield file


def _run(
    work: Import,
    files: tuple[str, ...],
    reader: Callable[[str, Callable[[int], object]], Reader],
    size: int,
) -> BaseException | None:
    """Runs the import. Returns the error that stopped it, or `None`."""
    report = work.report
    with rate("importing", size, lambda: report.accepted) as advance:
        try:
            work.run(files, lambda name: reader(name, advance))
        except (KeyboardInterrupt, OSError, OperatorError, StoreError) as error:
            return error
    return None


def _text(report: Report, verb: str) -> str:
    lines = [f"{report.accepted} records {verb}, {report.rejected} rejected"]
    shown = report.rejections[:_SHOWN_MAX]
    lines += [f"  {row['file']}:{row['line']}: {row['reason']}" for row in shown]
    if report.rejected > len(shown):
        lines.append("in all:")
        reasons = sorted(report.reasons.items(), key=lambda item: -item[1])
        lines += [f"  {count} x {reason}" for reason, count in reasons[:_SHOWN_MAX]]
    return "\n".join(lines)


def _warnings(report: Report) -> Iterator[str]:
    """Yields facts about the import that the tenant's owner may not expect."""
    if report.no_entity:
        yield (
            f"warning: {report.no_entity} records have no entity_id: they are stored, and nothing"
            " but export shows them; name it with --entity-column or --tag entity_id=NAME"
        )
    if report.other_measurement:
        yield (
            f"warning: {report.other_measurement} records are of a measurement that the service"
            f" does not serve by name: GET /topology without a filter shows their newest, no series"
            f" does; it serves {', '.join(MEASUREMENTS)}"
        )
    if report.clamped:
        yield f"warning: {report.clamped} records lay in the future: they have the time of now"


def _ending(stopped: BaseException, work: Import, options: dict[str, Any]) -> str:
    """Says how an import was stopped, which records are stored, and how to go on."""
    if isinstance(stopped, KeyboardInterrupt):
        cause = "interrupted"
    elif isinstance(stopped, OSError) and stopped.filename:
        cause = f"{stopped.filename}: {stopped.strerror}"
    else:
        cause = str(stopped)
    if options["check"]:
        return cause
    line = work.position[1]
    done = (
        f"stored is all up to {work.file}:{line}" if line else f"nothing of {work.file} is stored"
    )
    if options["resume"]:
        return f"{cause}; {done}; the same command goes on from there"
    on = "running it again would store that twice, unless it has --resume FILE from the beginning"
    if options["form"] in {"jsonl", "line-protocol"} and line:
        on = f"`tail -n +{line + 1}` of it has the rest; {on}"
    return f"{cause}; {done}; {on}"
