"""fleetcast within a program: `Plane.write_json`, answered once the batch is on disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fleetcast.bench.drivers.hosted import Hosted
from fleetcast.bench.texts import NS_PER_SECOND, json_body, seconds_of
from fleetcast.bench.trucks import FIELDS
from fleetcast.engine import Engine, RowBatch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleetcast.bench.driver import Fields, Samples

_NAME = "bench"
_HORIZON_NS = 10 * 365 * 86_400 * NS_PER_SECOND


class Embedded(Hosted):
    """fleetcast within a process of Python."""

    module = __name__
    about = "fleetcast embedded, JSON, its defaults"
    encode = staticmethod(json_body)


class FleetcastEngine:
    """One store."""

    def __init__(self, folder: Path) -> None:
        self._engine = Engine(folder, bytes(32))
        if not self._engine.folder(_NAME).exists():
            self._engine.create_plane(_NAME)
        self._plane = self._engine.plane(_NAME, _NAME)

    def session(self) -> FleetcastSession:
        return FleetcastSession(self._plane)

    def settle(self) -> None:
        self._plane.compact(after_seconds=0)

    def close(self) -> None:
        self._engine.close()


class FleetcastSession:
    """See `Session`."""

    def __init__(self, plane: Any) -> None:  # noqa: ANN401 - a `Plane`
        self._plane = plane

    def write(self, payload: bytes) -> None:
        result = self._plane.write_json(payload)
        if result.rejected_indices:
            message = f"rejected {result.rejected_indices}"
            raise ValueError(message)

    def newest(self, measurement: str) -> dict[str, tuple[int, Fields]]:
        answer = json.loads(
            self._plane.latest_json(measurement=measurement, freshness_ns=_HORIZON_NS)
        )
        return {
            each["entity_id"]: (seconds_of(each["observed_at"]), each["fields"])
            for each in answer["entities"]
        }

    def window(self, measurement: str, entities: Sequence[str], start: int, end: int) -> Samples:
        found: Samples = {}
        span = start * NS_PER_SECOND, end * NS_PER_SECOND
        fields = list(FIELDS[measurement])
        rows = self._plane.scan(
            *span, measurements=[measurement], entities=list(entities), fields=fields
        )
        for batch in rows:
            for row in _rows(batch):
                times = found.setdefault(row["tags"]["entity_id"], {})
                times[seconds_of(row["time"])] = row["fields"]
        return found

    def close(self) -> None:
        """Leaves the store open for the other sessions."""


def _rows(batch: RowBatch) -> list[dict[str, Any]]:
    text = b"".join(iter(batch.json_lines, b""))
    return [json.loads(line) for line in text.splitlines()]


engine = FleetcastEngine
