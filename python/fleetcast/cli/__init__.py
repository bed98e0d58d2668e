"""The command line, `fleetcast`."""

from fleetcast.cli.main import main

__all__ = ["main"]
