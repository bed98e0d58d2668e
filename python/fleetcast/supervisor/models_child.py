"""The release of the first models, in a process that ends afterwards.

The libraries of forecasts take 40 MB, which the supervisor would keep for as long as it runs.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

from fleetcast.composition.shared_settings import SharedSettings
from fleetcast.errors import OperatorError, reason
from fleetcast.forecast.serving.store import PredictionStoreUnavailable
from fleetcast.installation.backend import stores_of
from fleetcast.installation.forecasts import provide_models
from fleetcast.supervisor.child_configuration import read_configuration

if TYPE_CHECKING:
    from fleetcast.supervisor.child_configuration import ChildConfiguration


def provide_models_apart(configuration: ChildConfiguration) -> None:
    """Runs this module to its end. Raises `OperatorError`."""
    done = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", __name__],
        input=configuration.encode(),
        capture_output=True,
        pass_fds=[configuration.counters_fd, configuration.settings_fd],
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        message = f"the first models cannot be released: {said}"
        raise OperatorError(message)


def main() -> None:
    """Ends with status 1 and a line on stderr if it fails."""
    configuration = read_configuration()
    settings = SharedSettings(configuration.settings_fd).read()
    stores = stores_of(configuration.directory, settings, configuration.master_key)
    try:
        with closing(stores):
            provide_models(stores.predictions)
    except (OperatorError, OSError, PredictionStoreUnavailable) as error:
        sys.exit(reason(error))


if __name__ == "__main__":
    main()
