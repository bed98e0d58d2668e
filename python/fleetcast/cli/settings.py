"""`fleetcast config …`."""

from __future__ import annotations

import json
import os

import click

from fleetcast.cli.common import Run, table, with_run
from fleetcast.config import Override
from fleetcast.config.declarations import declarations
from fleetcast.config.name_mapping import read_names
from fleetcast.errors import SettingsError

_SET = "--set"


def read_assignments(assignments: tuple[str, ...]) -> list[Override]:
    """Reads the values of `--set`. Raises `SettingsError` for texts without an equals sign.

    Example: `http.workers=4`.
    """
    malformed = [text for text in assignments if "=" not in text]
    if malformed:
        raise SettingsError([f"--set {text}: must be SECTION.NAME=VALUE" for text in malformed])
    pairs = (text.split("=", 1) for text in assignments)
    return [Override(name, value, _SET) for name, value in pairs]


def _names(_ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    return [each.name for each in declarations() if each.name.startswith(begun)]


set_option = click.option(
    _SET,
    "assignments",
    multiple=True,
    metavar="SECTION.NAME=VALUE",
    shell_complete=_names,
)


@click.group()
def config() -> None:
    """Show and check the settings."""


@config.command("print")
@set_option
@click.option("--explain", is_flag=True, help="Say what each setting does, too.")
@with_run
def print_(run: Run, assignments: tuple[str, ...], *, explain: bool) -> None:
    """Print every setting in force and its source.

    Example: fleetcast config print --set http.workers=4
    """
    resolved = run.data.settings(os.environ, read_assignments(assignments))
    texts = {each.name: each.explanation for each in declarations()} if explain else {}
    header = ["setting", "value", "source", *(["explanation"] if explain else [])]
    rows = [(*row, *([texts[row[0]]] if explain else [])) for row in resolved.rows()]
    document = {name: dict(zip(header[1:], rest, strict=True)) for name, *rest in rows}
    cells = [(name, json.dumps(value), *rest) for name, value, *rest in rows]
    run.answer(document, table(header, cells))


@config.command()
@set_option
@with_run
def check(run: Run, assignments: tuple[str, ...]) -> None:
    """Check all settings, and adapters.toml if it exists, and list every fault."""
    run.data.settings(os.environ, read_assignments(assignments))
    read_names(run.data.adapters)
    run.answer({"ok": True}, "All settings are good.")
