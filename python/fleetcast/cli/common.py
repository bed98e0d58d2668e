"""Options and forms that commands share: `--data`, `--json`, durations, times and tables."""

from __future__ import annotations

import functools
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from fleetcast.durations import parse_duration
from fleetcast.engine import parse_time
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from fleetcast.installation.ownership import left_to_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from fleetcast.installation.opening import Installation

P = ParamSpec("P")
R = TypeVar("R")

_PATIENCE_SECONDS = 60.0
_RETRY_SECONDS = 0.1


@dataclass(frozen=True)
class Run:
    """One run of a command: its data directory, and the form of its answer."""

    data: DataDirectory
    json: bool

    def opened(self) -> AbstractContextManager[Installation]:
        """Opens the data directory."""
        return opened(self.data, os.environ)

    def opened_to_read(self, *, to_scan: bool = False) -> AbstractContextManager[Installation]:
        """Opens the data directory to read only; set `to_scan` if planes are to be scanned."""
        return opened(self.data, os.environ, to_read=True, to_scan=to_scan)

    def answer(self, document: object, text: str) -> None:
        """Prints one JSON document if `--json` was given, else the text."""
        click.echo(json.dumps(document) if self.json else text)


BACKUP_KEY = click.option(
    "--master-key",
    "key_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Master key of the backup, if the data directory has another key or none.",
)


def with_run(function: Callable[..., R]) -> Callable[..., R]:
    """Adds `--data` and `--json` to a command; its first argument becomes a `Run`."""

    @click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="FLEETCAST_DATA",
        default="./fleetcast-data",
        metavar="DIR",
        help="Data directory (or FLEETCAST_DATA).",
    )
    @click.option("--json", "as_json", is_flag=True, help="Answer with one JSON document.")
    @functools.wraps(function)
    def command(*args: Any, data: Path, as_json: bool, **options: Any) -> R:
        directory = DataDirectory(data.absolute())
        with left_to_owner(directory.root):
            return function(Run(directory, as_json), *args, **options)

    return command


def tenant_names(ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Returns the names of tenants that begin with `begun`, for completion."""
    return _completed(ctx, begun, _tenant_names)


def key_ids(ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Returns the ids of valid keys that begin with `begun`, for completion."""
    return _completed(ctx, begun, _valid_key_ids)


def _completed(
    ctx: click.Context, begun: str, names: Callable[[Installation], list[str]]
) -> list[str]:
    directory = DataDirectory(ctx.params["data"].absolute())
    # A data directory that cannot be read has no completion: a message would stand in the prompt.
    with suppress(Exception), opened(directory, os.environ, to_read=True) as installation:
        return [name for name in names(installation) if name.startswith(begun)]
    return []


def _tenant_names(installation: Installation) -> list[str]:
    return [tenant.name for tenant in installation.tenants.all()]


def _valid_key_ids(installation: Installation) -> list[str]:
    now = int(time.time())
    keys = map(installation.keys.all, _tenant_names(installation))
    return [key.key_id for each in keys for key in each if not key.ended(now)]


class TextType(click.ParamType[Any]):
    """Texts that `read` turns into a value. It raises `ValueError` for any other text."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Called by click, also with a value that was read before."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _time_ns(text: str) -> int:
    try:
        return parse_time(text)
    except ValueError as error:
        message = f"{text!r} is not a time: {error}"
        raise ValueError(message) from error


DURATION = TextType("duration", parse_duration)
"""A duration, in seconds. Example: `90d` is 7,776,000."""
INSTANT = TextType("time", _time_ns)
"""An ISO 8601 datetime, in nanoseconds since 1970; UTC if it has no offset.

Example: `2026-03-01` is 1,772,323,200,000,000,000.
"""


def patiently(attempt: Callable[[], R | None]) -> R | None:
    """Tries again while another compactor has the store, which rarely takes longer than a minute.

    Returns `None` if the store is still busy then.
    """
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        done = attempt()
        if done is not None or time.monotonic() >= until:
            return done
        time.sleep(_RETRY_SECONDS)


def instant(seconds: int | None) -> str | None:
    """Returns a stored time as ISO 8601 in UTC. Example: 0 is `1970-01-01T00:00:00Z`."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Pads columns to their widest cell; shows `None` and empty text as a hyphen."""
    cells = [[str(cell) if cell not in {None, ""} else "-" for cell in row] for row in rows]
    lines = [[name.upper() for name in header], *cells]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
