"""`fleetcast export`."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import click

from fleetcast.cli.common import INSTANT, Run, tenant_names, with_run
from fleetcast.cli.progress import rate
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO, Unpack

    from fleetcast.engine import Plane


class _Chosen(TypedDict):
    measurements: tuple[str, ...]
    entities: tuple[str, ...]


class _RowExport(NamedTuple):
    """Rows or hours to export, and the file that takes them."""

    plane: Plane
    form: str
    span: tuple[int, int]
    target: BinaryIO
    advance: Callable[[int], None]
    measurements: tuple[str, ...]
    entities: tuple[str, ...]


@click.command("export")
@click.argument("file")
@click.option(
    "--tenant",
    required=True,
    shell_complete=tenant_names,
    help="Tenant whose rows are exported.",
)
@click.option("--format", "form", type=click.Choice(["jsonl", "csv", "parquet"]), required=True)
@click.option("--start", type=INSTANT, required=True, help="Time of the first rows.")
@click.option("--end", type=INSTANT, required=True, help="Time after the last rows.")
@click.option(
    "--measurement", "measurements", multiple=True, help="Only this measurement; repeatable."
)
@click.option("--entity", "entities", multiple=True, help="Only this entity_id; repeatable.")
@click.option(
    "--hours",
    is_flag=True,
    help="Write hourly values of numbers instead of rows, also those that outlive their rows.",
)
@with_run
def export(
    run: Run,
    file: str,
    tenant: str,
    form: str,
    start: int,
    end: int,
    hours: bool,
    **chosen: Unpack[_Chosen],
) -> None:
    """Write every stored row, with all its tags and fields, to FILE; - is standard output.

    The rows are those of one instant, so later writes do not appear. FILE appears when it is whole.
    JSON lines and CSV are compressed if FILE ends in .gz or .zst. `import` reads the file again.

    Example: fleetcast export rows.jsonl.zst --tenant acme --format jsonl --start 2026-03-01 --end
    2026-04-01
    """
    from fleetcast.transfer.exporting import written

    if start >= end:
        message = "--start must be before --end"
        raise OperatorError(message)
    rows = 0

    def count(more: int) -> None:
        nonlocal rows
        rows += more
        advance(more)

    with run.opened_to_read(to_scan=True) as installation:
        record = installation.tenants.get(tenant)
        plane = installation.engine.plane(record.account_id, record.name)
        try:
            with (
                _terminated_as_interrupted(),
                rate("exporting", 0, lambda: rows) as advance,
                written(file) as target,
            ):
                write = _write_hours if hours else _write
                write(_RowExport(plane, form, (start, end), target, count, **chosen))
        except KeyboardInterrupt:
            untouched = "" if file == "-" else f"; {file} is as it was before"
            click.echo(f"fleetcast: interrupted{untouched}", err=True)
            raise
    text = f"{rows} {'hourly values' if hours else 'rows'} exported"
    if file == "-":
        click.echo(f"fleetcast: {text}", err=True)
    else:
        run.answer({"tenant": record.name, "file": file, "rows": rows}, f"{text} to {file}")


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Treats SIGTERM as Ctrl-C, so that a file that is not whole is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tags(plane: Plane, measurements: tuple[str, ...]) -> list[str]:
    """Returns the names of all tags of some measurements, or of all."""
    found = plane.describe()["measurements"]
    chosen = measurements or tuple(found)
    names = {tag for name in chosen if name in found for tag in found[name]["tags"]}
    return sorted(names | {"entity_id"})


def _write(asked: _RowExport) -> None:
    stream = asked.plane.scan(
        *asked.span, measurements=asked.measurements or None, entities=asked.entities or None
    )
    if asked.form == "jsonl":
        from fleetcast.transfer.exporting import export_jsonl

        export_jsonl(stream, asked.target, asked.advance)
        return
    from fleetcast.transfer import table_export

    try:
        stream.check_table()
    except ValueError as error:
        message = f"{error}: use --format jsonl, or fewer of them with --measurement"
        raise OperatorError(message) from None
    if asked.form == "parquet":
        table_export.export_parquet(stream, asked.target, asked.advance)
    else:
        # Names are read after the scan began, because tags are never fewer later.
        names = _tags(asked.plane, asked.measurements)
        table_export.export_csv(stream, names, asked.target, asked.advance)


def _write_hours(asked: _RowExport) -> None:
    from fleetcast.transfer.hours_export import hour_frames, write_hours

    names = asked.measurements, asked.entities
    frames = hour_frames(asked.plane, asked.span, names, asked.advance)
    write_hours(frames, asked.form, asked.target)
