"""fleetcast within a program: `Plane.write_json`, answered once the batch is on disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fleetcast.bench.drivers.fleetcast_service import newest_of
from fleetcast.bench.drivers.hosted import Hosted
from fleetcast.bench.texts import json_body
from fleetcast.bench.truth import WEEK_NS
from fleetcast.engine import Engine, RowBatch, parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleetcast.bench.driver import Fields, Samples
    from fleetcast.bench.rows import RowNames, SentRow

_NAME = "bench"


class Embedded(Hosted):
    """fleetcast within a process of Python."""

    module = __name__
    about = "fleetcast embedded, JSON, its defaults"

    def encode(self, rows: Sequence[SentRow]) -> object:
        return json_body(rows)


class FleetcastEngine:
    """One store."""

    def __init__(self, folder: Path, names: RowNames) -> None:
        self._engine = Engine(folder, bytes(32))
        if not self._engine.folder(_NAME).exists():
            self._engine.create_plane(_NAME)
        self._plane = self._engine.plane(_NAME, _NAME)
        self._names = names

    def session(self) -> FleetcastSession:
        return FleetcastSession(self._plane, self._names)

    def settle(self) -> None:
        self._plane.compact(after_seconds=0)

    def close(self) -> None:
        self._engine.close()


class FleetcastSession:
    """See `Session`."""

    def __init__(self, plane: Any, names: RowNames) -> None:  # noqa: ANN401 - a `Plane`
        self._plane = plane
        self._names = names

    def write(self, payload: bytes) -> None:
        result = self._plane.write_json(payload)
        if result.rejected_indices:
            message = f"rejected {result.rejected_indices}"
            raise ValueError(message)

    def newest(self, measurement: str, end_ns: int) -> dict[str, tuple[int, Fields]]:
        return newest_of(
            json.loads(
                self._plane.latest_json(
                    measurement=measurement, as_of_ns=end_ns, freshness_ns=WEEK_NS
                )
            )
        )

    def window(
        self, measurement: str, entities: Sequence[str], start_ns: int, end_ns: int
    ) -> Samples:
        found: Samples = {}
        fields = list(self._names.fields[measurement])
        rows = self._plane.scan(
            start_ns, end_ns, measurements=[measurement], entities=list(entities), fields=fields
        )
        for batch in rows:
            for row in _rows(batch):
                times = found.setdefault(row["tags"]["entity_id"], {})
                times[parse_time(row["time"])] = row["fields"]
        return found

    def close(self) -> None:
        """Leaves the store open for the other sessions."""


def _rows(batch: RowBatch) -> list[dict[str, Any]]:
    text = b"".join(iter(batch.json_lines, b""))
    return [json.loads(line) for line in text.splitlines()]


engine = FleetcastEngine
