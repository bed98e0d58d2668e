"""The prediction store of a data directory: LMDB, and a folder of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.engine import Records
from fleetcast.errors import RecordsUnavailable
from fleetcast.forecast.serving.models import ModelFiles
from fleetcast.forecast.serving.store import PredictionStore, PredictionStoreUnavailable
from fleetcast.forecast.serving.tables import QUOTAS, TABLES
from fleetcast.free_space import check_room

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleetcast.forecast.serving.tables import Quota

_FORMAT = b"fleetcast predictions 2"


class EmbeddedPredictions(PredictionStore):
    """The prediction store in `directory`."""

    models: ModelFiles

    def __init__(self, directory: Path, quotas: Mapping[str, Quota] = QUOTAS) -> None:
        self._directory = directory
        self._folder = directory / "store"
        records = Records.in_folder(self._folder, TABLES, _FORMAT)
        super().__init__(records, ModelFiles(directory / "models"), quotas)

    def ensure(self) -> None:
        """Makes the store, if there is none. Raises `OSError`, `PredictionStoreUnavailable`."""
        if self._folder.exists():
            return
        # One after the other: parents that `mkdir` makes on the way get the usual mode.
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self.models.folder.mkdir(mode=0o700, exist_ok=True)
        try:
            Records.create(self._folder, TABLES, _FORMAT, {})
        except RecordsUnavailable as error:
            message = f"{self._folder} cannot be made: {error}"
            raise PredictionStoreUnavailable(message) from error

    def ping(self) -> None:
        """Asks whether it can be read and written, and has room for a change.

        It waits for whoever is writing. Raises `OSError`, `PredictionStoreUnavailable` if not.
        """
        super().ping()
        check_room(self._folder)
