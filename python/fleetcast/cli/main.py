"""The group of all commands, and how a run of one ends: status 0, 1 or 2, never a traceback."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

import click

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.cli.compact import compact
from fleetcast.cli.demo import demo
from fleetcast.cli.doctor import doctor
from fleetcast.cli.forecast import forecast
from fleetcast.cli.importing import import_
from fleetcast.cli.init import init
from fleetcast.cli.key import key
from fleetcast.cli.provision import provision
from fleetcast.cli.serve import serve
from fleetcast.cli.settings import config
from fleetcast.cli.stats import stats
from fleetcast.cli.tenant import tenant
from fleetcast.cli.verify import verify
from fleetcast.errors import OperatorError, SettingsError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS = (
    *(init, tenant, key, provision, serve, config, stats, compact),
    *(verify, import_, forecast, demo, doctor),
)
_INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def fleetcast() -> None:
    """Store fleet telemetry and serve it."""


for _command in _COMMANDS:
    fleetcast.add_command(_command)


def main() -> None:
    """Runs the command line of this process and ends it."""
    gc.freeze()  # what is imported stays: no collection has to go through it, nor the end
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns the exit status."""
    try:
        status = fleetcast.main(list(arguments), "fleetcast", standalone_mode=False)
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
    except SettingsError as error:
        for problem in error.problems:
            _say(problem)
    except (OperatorError, ControlStoreUnavailable, StoreError) as error:
        _say(str(error))
    except OSError as error:
        _say(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except Exception as error:  # noqa: BLE001  the last resort: one line, never a traceback
        _say(f"internal error: {type(error).__name__}: {error}")
    return 1


def _say(message: str) -> None:
    line = " ".join(message.split())
    click.echo(f"fleetcast: {line}", err=True)
