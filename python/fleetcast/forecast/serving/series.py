"""States of a batch's pools on the day of its issue time: kept from earlier, or fitted now.

A state follows from a pool's rows before the day and from the model for all. So every process fits
the same state, and a lost state is fitted again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleetcast.engine import RecordStamp
from fleetcast.forecast.features.windows import STEP_NS
from fleetcast.forecast.series import STATE, decoded, encoded
from fleetcast.forecast.series import starts as starts_of
from fleetcast.forecast.series.state import LAYOUT
from fleetcast.forecast.serving.inputs import history_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.engine import Plane
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.model import Forecaster
    from fleetcast.forecast.series import States
    from fleetcast.forecast.serving.records import EntityKey
    from fleetcast.forecast.serving.rollouts import Release
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.forecast.serving.tables import Records

FITS_MAX = 500
"""States that one request may have fitted: some ten seconds of its lease."""


def is_fitted(records: Records, entity: EntityKey, release: Release, issued_ns: int) -> bool:
    """Returns true if the state of an entity for this day is kept."""
    key = _key(entity, release.sha256, _start(entity, issued_ns))
    return records.get("series", key) is not None


class SeriesStates:
    """States for one batch; `sealed` are the states to be written, by key."""

    def __init__(
        self,
        store: PredictionStore,
        plane: Plane,
        family: Family,
        entities: Sequence[EntityKey],
        issued_ns: int,
    ) -> None:
        self._store = store
        self._plane = plane
        self._family = family
        self._entities = entities
        self._issued_ns = issued_ns
        self.sealed: dict[bytes, bytes] = {}

    def of(self, forecaster: Forecaster, mine: Sequence[int]) -> States | None:
        """States of some entities, by index.

        `None` for a model that is not mixed. Raises `StoreError`, `PredictionStoreUnavailable`.
        """
        if not forecaster.is_mixed:
            return None
        starts = [_start(self._entities[index], self._issued_ns) for index in mine]
        states = np.zeros((len(mine), 1), STATE)
        states["start"][:, 0] = starts
        version = forecaster.metadata.sha256
        wanted = {
            place: _key(self._entities[index], version, starts[place])
            for place, index in enumerate(mine)
        }
        with self._store.read() as records:
            records.load("series", list(wanted.values()))
            records_of = {place: records.get("series", key) for place, key in wanted.items()}
        # A state whose data key was dropped counts as missing.
        held = {
            place: record and self._plane.unseal(RecordStamp.content(record))
            for place, record in records_of.items()
        }
        for place, state in held.items():
            if state is not None:
                states[place] = decoded([state])[0]
        missing = [place for place, state in held.items() if state is None]
        entity_ids = [self._entities[mine[place]].entity_id for place in missing]
        days_ns = [starts[place] * STEP_NS for place in missing]
        for some, rows in history_of(self._plane, self._family, entity_ids, days_ns):
            places = missing[some]
            learned = forecaster.learned(rows, np.array([[starts[place]] for place in places]))
            for place, state in zip(places, learned, strict=True):
                states[place] = state
                self.sealed[wanted[place]] = self._plane.seal(encoded(state[0]))
        return states


def _start(entity: EntityKey, issued_ns: int) -> int:
    return int(starts_of(entity.entity_id, np.array([issued_ns]))[0])


def _key(entity: EntityKey, sha256: str, start: int) -> bytes:
    return entity.key + bytes.fromhex(sha256[:16]) + bytes([LAYOUT]) + start.to_bytes(4, "big")
