"""Writes a golden store with this version: `python -m tests.golden.make NAME`.

A store, once committed, is never written again: a change of the format gets a store of its own
beside it. What it must answer is computed by the plain model, not by the engine.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.engine import Engine, encode_records, format_time
from tests.engine.model import SECOND_NS, Model
from tests.engine.strategies import BASE_NS, NOW_NS

if TYPE_CHECKING:
    from fleetcast.engine import Plane

HERE = Path(__file__).parent
TENANT = "golden"
MASTER_KEY = bytes(range(32))
LATEST = (
    {"as_of_ns": NOW_NS, "freshness_ns": 604_800 * SECOND_NS, "measurement": None},
    {"as_of_ns": BASE_NS + 90 * SECOND_NS, "freshness_ns": 3600 * SECOND_NS, "measurement": "link"},
)
DELETES = (
    {
        "start_ns": BASE_NS - 900 * SECOND_NS,
        "end_ns": BASE_NS + 60 * SECOND_NS,
        "measurements": ["link", "weather"],
        "entities": ["e0", "é"],
    },
    {"start_ns": BASE_NS + 300 * SECOND_NS, "end_ns": NOW_NS, "measurements": ["pool_interval"]},
)
_WINDOW = {
    "entity_ids": ["e0", "e1", "é"],
    "start_ns": BASE_NS - 3660 * SECOND_NS,
    "end_ns": BASE_NS + 7000 * SECOND_NS,
    "measurement": "link",
}
SERIES = (
    *({**_WINDOW, "interval": "1h", "agg": agg} for agg in ("mean", "min", "max", "last")),
    {**_WINDOW, "interval": "15s", "agg": "last"},
    {**_WINDOW, "start_ns": BASE_NS, "end_ns": BASE_NS + 150 * SECOND_NS},
    {**_WINDOW, "entity_ids": ["w"], "interval": "1h", "agg": "mean"},
    {**_WINDOW, "entity_ids": ["w"], "start_ns": BASE_NS - 3600 * SECOND_NS, "end_ns": BASE_NS},
)


def batch(number: int) -> list[dict]:
    """Every type, decimals and doubles that are none, gaps, ties, late rows, shared entities."""
    dice = random.Random(number)
    values = {
        "snr_db": lambda: dice.randrange(-300, 300) / 10,
        "noise": lambda: dice.choice([dice.random(), -0.0, 5e-324, 1e15 + 0.5]),
        "count": lambda: float(dice.randrange(5)),
        "up": lambda: dice.random() < 0.5,
        "mode": lambda: dice.choice(["", "tx", "é\n"]),
    }
    return [
        {
            "measurement": dice.choice(["link", "link", "link", "weather", "pool_interval"]),
            "time_ns": BASE_NS + (dice.randrange(-40, 40) * 15 - 900 * (number % 2)) * SECOND_NS,
            "tags": {"entity_id": dice.choice(["e0", "e1", "é"]), "site": dice.choice("xy")},
            "fields": {name: make() for name, make in values.items() if dice.random() < 0.7},
        }
        for _ in range(100)
    ]


def walk() -> list[dict]:
    """Rows of a link, day in, day out: steps of one range, a direction that wraps, late clocks.

    Blocks of it take every form that numbers are packed in.
    """
    dice = random.Random(2)
    azimuth, snr = 0.0, 9.0
    records = []
    for step in range(600):
        azimuth = round((azimuth + 2.4 * dice.random() - 0.8) % 360, 2)
        snr = round(snr + 0.8 * dice.random() - 0.4, 1)
        late_ns = dice.randrange(10) * 1_000_000
        records.append(
            {
                "measurement": "link",
                "time_ns": BASE_NS + (10 * step - 5_999) * SECOND_NS + late_ns,
                "tags": {"entity_id": "w", "site": "x"},
                "fields": {"azimuth_deg": azimuth, "snr_db": snr},
            }
        )
    return records


def fill(plane: Plane) -> Model:
    """Segments that were merged, segments that were not, something in the log, two deletes."""
    model = Model(TENANT)
    for number in range(8):
        write(plane, model, walk() if number in {2, 7} else batch(number))
        if number in {1, 3, 4, 5, 6}:
            plane.compact(whole=True, now_ns=NOW_NS)
    for delete in DELETES:
        assert plane.delete(**delete).rows == model.delete(**delete)
    return model


def write(plane: Plane, model: Model, records: list[dict]) -> None:
    body = encode_records(
        {
            **{key: value for key, value in record.items() if key != "time_ns"},
            "time": format_time(record["time_ns"]),
        }
        for record in records
    )
    plane.write_json(body, now_ns=NOW_NS)
    model.write(records, NOW_NS)


def write_answers(model: Model, stored_rows: int, folder: Path) -> None:
    """Keeps what a store must answer, `stored_rows` of which hidden ones are among."""
    answers = {
        "rows": len(model.records),
        "hidden_rows": stored_rows - len(model.records),
        "latest": [model.latest(**query) for query in LATEST],
        "series": [model.series(**query) for query in SERIES],
    }
    (folder / "answers.json").write_text(json.dumps(answers) + "\n")


def make(name: str) -> None:
    """A store of its own."""
    folder = HERE / name
    folder.mkdir()
    engine = Engine(folder, MASTER_KEY)
    engine.create_plane("plane")
    plane = engine.plane("plane", TENANT)
    model = fill(plane)
    written = plane.stats().rows
    engine.close()
    (folder / "plane" / "plane.mdb-lock").unlink()
    for lock in ("compaction.lock", "segments.lock", "plane.log-lock"):
        (folder / "plane" / lock).unlink(missing_ok=True)
    write_answers(model, written, folder)


if __name__ == "__main__":
    make(sys.argv[1])
