"""The prediction store of a data directory: LMDB, and a folder of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.engine import Records
from fleetcast.errors import OperatorError, RecordsUnavailable
from fleetcast.forecast.serving.models import ModelFiles
from fleetcast.forecast.serving.store import PredictionStore, PredictionStoreUnavailable
from fleetcast.forecast.serving.tables import QUOTAS, TABLES
from fleetcast.free_space import check_room

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleetcast.engine import MasterKeys
    from fleetcast.forecast.serving.tables import Quota

_NAME = "fleetcast predictions 2"


class EmbeddedPredictions(PredictionStore):
    """The prediction store in `directory`."""

    models: ModelFiles

    def __init__(
        self,
        directory: Path,
        master_key: bytes | MasterKeys,
        quotas: Mapping[str, Quota] = QUOTAS,
    ) -> None:
        self._directory = directory
        self._folder = directory / "store"
        self._master_key = master_key
        records = Records.in_folder(self._folder, _NAME, TABLES, master_key)
        super().__init__(records, ModelFiles(directory / "models"), quotas)

    def ensure(self) -> None:
        """Makes the store, if it is missing. Raises `OSError`, `PredictionStoreUnavailable`."""
        if self._folder.exists():
            return
        # The folders are made in turn, because parents that `mkdir` makes itself get the usual
        # mode.
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self.models.folder.mkdir(mode=0o700, exist_ok=True)
        try:
            Records.create(self._folder, _NAME, TABLES, self._master_key)
        except RecordsUnavailable as error:
            message = f"{self._folder} cannot be made: {error}"
            raise PredictionStoreUnavailable(message) from error

    def take_over(self) -> None:
        """Seals what fleetcast 0.3.0 wrote. Raises `OperatorError` if it cannot be used."""
        try:
            if self._folder.exists():
                super().take_over()
        except RecordsUnavailable as error:
            advice = "try again, or move it away: forecasts are made anew"
            message = f"{self._folder} cannot be taken over from 0.3.0: {error}; {advice}"
            raise OperatorError(message) from error

    def turn(self) -> bool:
        """Seals all records under the newest master key; returns false if that was done before.

        Raises `PredictionStoreUnavailable`; no record is changed then.
        """
        return self._folder.exists() and super().turn()

    def forget(self, account_id: str) -> None:
        """Deletes the records of a deleted account, if there are any.

        Raises `PredictionStoreUnavailable`.
        """
        if self._folder.exists():
            super().forget(account_id)

    def check(self) -> None:
        """Checks all records, if there are any. Raises `PredictionStoreUnavailable`."""
        if self._folder.exists():
            super().check()

    def ping(self) -> None:
        """Checks that the store can be read and written, and has room for a change.

        The check waits for a write under way. Raises `OSError`, `PredictionStoreUnavailable` if
        not.
        """
        super().ping()
        check_room(self._folder)
