"""The group of all commands, and how a run of one ends: status 0, 1 or 2, never a traceback."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, cast

import click

from fleetcast.extras import missing
from fleetcast.security.core_files import leave_no_core

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Files below `cli` and the command in each. One is loaded when it is called, or when all are
# listed, so that no command waits for the libraries of another.
_COMMANDS = {
    "backup": ("backup", "backup"),
    "bench": ("bench", "bench"),
    "compact": ("compact", "compact"),
    "completion": ("completion", "completion"),
    "config": ("settings", "config"),
    "delete": ("delete", "delete"),
    "demo": ("demo.command", "demo"),
    "describe": ("describe", "describe"),
    "doctor": ("doctor", "doctor"),
    "export": ("export", "export"),
    "forecast": ("forecast", "forecast"),
    "import": ("importing", "import_"),
    "init": ("init", "init"),
    "key": ("key", "key"),
    "mqtt": ("mqtt", "mqtt"),
    "operator": ("operator", "operator"),
    "provision": ("provision", "provision"),
    "restore": ("restore", "restore"),
    "serve": ("serve", "serve"),
    "stats": ("stats", "stats"),
    "status": ("status", "status"),
    "tenant": ("tenant", "tenant"),
    "tls": ("tls", "tls"),
    "verify": ("verify", "verify"),
}
_INTERRUPTED = 130


class _Commands(click.Group):
    """Commands by name, each loaded when somebody asks for it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Called by click."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Called by click."""
        if cmd_name not in _COMMANDS:
            if cmd_name.isidentifier():  # not what a completion or an option asks about
                raise click.exceptions.NoSuchCommand(cmd_name, possibilities=_COMMANDS, ctx=ctx)
            return None
        file, command = _COMMANDS[cmd_name]
        return cast("click.Command", getattr(import_module(f"fleetcast.cli.{file}"), command))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fleetcast", message="%(prog)s %(version)s")
def fleetcast() -> None:
    """Store fleet telemetry and serve it."""


def main() -> None:
    """Runs the command line of this process and ends it."""
    gc.freeze()  # what is imported stays: no collection has to go through it, nor the end
    leave_no_core()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns the exit status."""
    try:
        status = fleetcast.main(_texts(arguments), "fleetcast", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        _say(error.format_message())
        bad_value = isinstance(error, click.BadParameter)
        missing = isinstance(error, click.MissingParameter)
        return 1 if bad_value and not missing else error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; without this the interpreter complains at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the last resort: one line, never a traceback
        for line in _problems(error):
            _say(line)
    return 1


def _texts(arguments: Sequence[str]) -> list[str]:
    """The arguments, which must be text: names are written to stores and answers in UTF-8."""
    for argument in arguments:
        if argument != argument.encode(errors="replace").decode():
            message = f"{argument!a} is no UTF-8"
            raise click.UsageError(message)
    return list(arguments)


def _problems(error: Exception) -> Iterator[str]:
    """Lines on what an operator can mend, as it says itself; all else is a fault of ours."""
    # Not at the top of the file: they load the engine, which help and versions do without.
    from fleetcast.accounts import ControlStoreUnavailable
    from fleetcast.errors import OperatorError, SettingsError, StoreError, reason

    if isinstance(error, SettingsError):
        yield from error.problems
    elif isinstance(error, OperatorError | ControlStoreUnavailable | StoreError):
        yield str(error)
    elif isinstance(error, ModuleNotFoundError) and missing(error):
        yield str(missing(error))
    elif isinstance(error, OSError):
        yield reason(error)
    else:
        yield f"internal error: {type(error).__name__}: {error}"


def _say(message: str) -> None:
    line = " ".join(message.split())
    click.echo(f"fleetcast: {line}", err=True)
