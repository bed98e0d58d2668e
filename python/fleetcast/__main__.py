"""Runs the command `fleetcast` for `python -m fleetcast`."""

import sys

from fleetcast.extras import missing


def main() -> None:
    """Runs the command line of this process and ends it."""
    try:
        from fleetcast.cli import main as run  # noqa: PLC0415 - click is in an extra
    except ModuleNotFoundError as error:
        line = missing(error)
        if line is None:
            raise
        sys.exit(f"fleetcast: {line}")
    run()


if __name__ == "__main__":
    main()
