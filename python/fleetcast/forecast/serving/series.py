"""States of a batch's pools on the day of its issue time: kept from earlier, or fitted now.

A state follows from a pool's rows before the day and from the model for all. So every process fits
the same state, and a lost state is fitted again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import DEMAND
from fleetcast.forecast.features.demand import DAY
from fleetcast.forecast.series import STATE, decoded, encoded
from fleetcast.forecast.series.state import LAYOUT
from fleetcast.forecast.serving.clock import content
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
_DAY_NS = DAY * DEMAND.step_ns


def is_fitted(records: Records, entity: EntityKey, release: Release, issued_ns: int) -> bool:
    """Returns true if the state of an entity for this day is kept."""
    return records.get("series", _key(entity, release.sha256, issued_ns)) is not None


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

    def of(self, forecaster: Forecaster, mine: Sequence[int], usable: np.ndarray) -> States | None:
        """States of some entities, by index; an empty state for entities that are not `usable`.

        `None` for a model that is not mixed. Raises `StoreError`, `PredictionStoreUnavailable`.
        """
        if not forecaster.is_mixed:
            return None
        day = self._issued_ns // _DAY_NS
        states = np.zeros((len(mine), 1), STATE)
        states["day"] = day
        version = forecaster.metadata.sha256
        wanted = {
            place: _key(self._entities[index], version, self._issued_ns)
            for place, index in enumerate(mine)
            if usable[place]
        }
        with self._store.read() as records:
            records.load("series", list(wanted.values()))
            held = {place: records.get("series", key) for place, key in wanted.items()}
        for place, record in held.items():
            if record is not None:
                states[place] = decoded([self._plane.unseal(content(record))])[0]
        missing = [place for place, record in held.items() if record is None]
        entity_ids = [self._entities[mine[place]].entity_id for place in missing]
        for start, rows in history_of(self._plane, self._family, entity_ids, day * _DAY_NS):
            learned = forecaster.learned(rows, np.array([day]))
            for place, state in zip(missing[start : start + len(rows)], learned, strict=True):
                states[place] = state
                self.sealed[wanted[place]] = self._plane.seal(encoded(state[0]))
        return states


def _key(entity: EntityKey, sha256: str, issued_ns: int) -> bytes:
    day = (issued_ns // _DAY_NS).to_bytes(4, "big")
    return entity.key + bytes.fromhex(sha256[:16]) + bytes([LAYOUT]) + day
