"""The group of all commands. A run ends with status 0, 1 or 2, never with a traceback."""

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

_NAMES = (
    *("backup", "bench", "compact", "completion", "config", "delete", "demo", "describe"),
    *("doctor", "export", "forecast", "import", "init", "key", "master-key", "mqtt", "operator"),
    *("provision", "restore", "serve", "stats", "status", "tenant", "tls", "verify"),
)
# Files below `cli` that have not the name of their command. A file is loaded when its command is
# called, or when all are listed. So no command waits for the libraries of another.
_FILES = {"config": "settings", "demo": "demo.command", "import_": "importing"}
_INTERRUPTED = 130


class _Commands(click.Group):
    """Commands by name, each loaded on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Called by click."""
        return list(_NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Called by click."""
        if cmd_name not in _NAMES:
            if cmd_name.isidentifier():  # a completion or an option may ask for other texts
                raise click.exceptions.NoSuchCommand(cmd_name, possibilities=_NAMES, ctx=ctx)
            return None
        name = "import_" if cmd_name == "import" else cmd_name.replace("-", "_")
        module = import_module(f"fleetcast.cli.{_FILES.get(name, name)}")
        return cast("click.Command", getattr(module, name))


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(package_name="fleetcast", message="%(prog)s %(version)s")
def fleetcast() -> None:
    """Store fleet telemetry and serve it."""


def main() -> None:
    """Runs the command line of this process and ends the process."""
    gc.freeze()  # collections then skip all imported objects, also at the end
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
        # The reader of our output has gone. Without this, the interpreter would complain at its
        # end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the last resort: one line, never a traceback
        for line in _problems(error):
            _say(line)
    return 1


def _texts(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments, which must be UTF-8, because names in them are stored and answered."""
    for argument in arguments:
        if argument != argument.encode(errors="replace").decode():
            message = f"{argument!a} is no UTF-8"
            raise click.UsageError(message)
    return list(arguments)


def _problems(error: Exception) -> Iterator[str]:
    """Returns the lines of an error that an operator can mend; other errors are internal errors."""
    # Imports at the top would load the engine, which `--help` and `--version` do not need.
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
