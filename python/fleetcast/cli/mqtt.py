"""`fleetcast mqtt`."""

from __future__ import annotations

import signal
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fleetcast.mqtt.bridge import Bridge
    from fleetcast.mqtt.settings import BridgeSettings

_STOPPING = (signal.SIGTERM, signal.SIGINT)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--check", is_flag=True, help="Only check the settings.")
def mqtt(file: Path, check: bool) -> None:
    """Store an MQTT broker's messages for this bridge, until SIGTERM.

    FILE is TOML. Begin with a copy of integrations/mqtt/bridge.toml.

    Example: fleetcast mqtt bridge.toml --check
    """
    from fleetcast.mqtt.reading import SettingsFault, read_settings

    try:
        settings = read_settings(file)
    except SettingsFault as fault:
        lines = [f"{file}: {problem}" for problem in fault.problems]
        raise click.ClickException("\nfleetcast: ".join(lines)) from None
    if not check:
        _run(settings)


def _stop_at_signal(bridge: Bridge) -> None:
    signal.sigwait(_STOPPING)
    bridge.stop()


def _run(settings: BridgeSettings) -> None:
    from fleetcast.client.spool import SpoolInUse
    from fleetcast.errors import reason
    from fleetcast.extras import naming_the_extra
    from fleetcast.logs import configure_logs
    from fleetcast.mqtt.spool import spool_problem

    with naming_the_extra():
        from fleetcast.mqtt.bridge import Bridge
    configure_logs("mqtt")
    try:
        bridge = Bridge(settings)
        # No signal handler: it may run while the main thread holds the lock that the handler would
        # need.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        threading.Thread(target=_stop_at_signal, args=(bridge,), daemon=True).start()
        bridge.run()
    except sqlite3.Error as error:
        raise click.ClickException(spool_problem(Path(settings.spool.folder), error)) from None
    except (SpoolInUse, OSError) as error:
        raise click.ClickException(reason(error)) from None
