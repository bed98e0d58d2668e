"""The prediction store of a data directory: LMDB, and a folder of models."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fleetcast.forecast.serving.models import ModelFiles
from fleetcast.forecast.serving.store import PredictionStore, PredictionStoreUnavailable
from fleetcast.forecast.serving.tables import QUOTAS, TABLES, TENANT_TABLES
from fleetcast.lmdb_store import FORMAT_KEY, LmdbStore, LmdbUnavailable
from fleetcast.record_store import OWN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleetcast.forecast.serving.tables import Quota

_FORMAT = b"fleetcast predictions 2"
# Version 1 kept a record of every entity that was ever asked for; none had an age.
_FORMAT_1 = b"fleetcast predictions 1"
_RETIRED = "assignments"


class EmbeddedPredictions(PredictionStore):
    """The prediction store in `directory`."""

    models: ModelFiles

    def __init__(self, directory: Path, quotas: Mapping[str, Quota] = QUOTAS) -> None:
        self._directory = directory
        self._lmdb = LmdbStore(directory / "store", TABLES, _FORMAT)
        super().__init__(self._lmdb, ModelFiles(directory / "models"), quotas)

    def ensure(self) -> None:
        """Makes the store where there is none, and takes over one of an earlier version.

        Raises `OSError`, `PredictionStoreUnavailable`.
        """
        if self._lmdb.directory.exists():
            self._take_over()
            return
        # One after the other: parents that `mkdir` makes on the way get the usual mode.
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self.models.folder.mkdir(mode=0o700, exist_ok=True)
        try:
            self._lmdb.create()
        except LmdbUnavailable as error:
            message = f"{self._lmdb.directory} cannot be made: {error}"
            raise PredictionStoreUnavailable(message) from error

    def _take_over(self) -> None:
        """Empties what version 1 kept of tenants; its releases stay."""
        earlier = LmdbStore(self._lmdb.directory, (*TABLES, _RETIRED), _FORMAT_1)
        # A store that is of no use says so with its next use.
        with suppress(LmdbUnavailable), earlier.transaction(write=True) as view:
            for name in (*TENANT_TABLES, _RETIRED):
                view.drop(name, delete=name == _RETIRED)
            view.put(OWN, FORMAT_KEY, _FORMAT)
        earlier.close()
