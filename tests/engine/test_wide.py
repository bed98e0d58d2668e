"""N3, N4: one record of thousands of fields costs its values, not those times other rows."""

from __future__ import annotations

import json
import multiprocessing
import resource
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Engine, encode_records, format_time
from tests.waiting import PATIENCE_SECONDS

from .model import SECOND_NS
from .strategies import BASE_NS, NOW_NS

if TYPE_CHECKING:
    from pathlib import Path

MASTER_KEY = bytes(range(32))
TENANT = "acme"
ROWS = 9_000
FIELDS = 4_000
STEP_NS = 400_000_000
WIDE_AT = 4_500
ASKED = {
    "entity_ids": ["a"],
    "start_ns": BASE_NS,
    "end_ns": BASE_NS + 3600 * SECOND_NS,
    "measurement": "link",
    "now_ns": NOW_NS,
}
RISE_BYTES_MAX = 80 << 20


def records() -> list[dict]:
    """Rows of one entity within an hour, one of them with all fields."""
    return [
        {
            "measurement": "link",
            "time": format_time(BASE_NS + at * STEP_NS),
            "tags": {"entity_id": "a"},
            "fields": {f"f{n}": n + 0.5 for n in range(FIELDS)}
            if at == WIDE_AT
            else {"snr_db": float(at)},
        }
        for at in range(ROWS)
    ]


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def work(folder: Path, answers) -> None:
    """Writes, compacts and reads, in a process whose peak is its own."""
    engine = Engine(folder, MASTER_KEY)
    plane = engine.plane("wide", TENANT)
    body = records()
    for start in range(0, ROWS, 1000):
        plane.write_json(encode_records(body[start : start + 1000]), now_ns=NOW_NS)
    before = peak_bytes()
    found = []
    for _ in range(2):
        for interval in (None, "15s", "1h"):
            answer = json.loads(plane.series_json(**ASKED, interval=interval))
            (entity,) = answer["series"]
            found.append((entity["point_count"], len(entity["channels"]), answer["next_start"]))
        plane.compact(whole=True, now_ns=NOW_NS)
    with pytest.raises(ValueError, match="cells"):
        plane.series_frame(**ASKED)
    answers.put((found, peak_bytes() - before))
    engine.close()


def test_n3_n4_one_wide_record_among_thousands_of_rows(tmp_path: Path) -> None:
    """Rows times fields are 36 million here, 288 MB of doubles; the answers have a million."""
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("wide")
    engine.close()
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    worker = context.Process(target=work, args=(tmp_path, answers))
    worker.start()
    found, rise_bytes = answers.get(timeout=PATIENCE_SECONDS)
    worker.join()
    cut = format_time(BASE_NS + WIDE_AT * STEP_NS)
    windows = -(-ROWS * STEP_NS // (15 * SECOND_NS))
    assert windows * (FIELDS + 2) < 1_000_000
    # Before the wide row two values a row; with it each row has 4,002.
    raw = (WIDE_AT, 1, cut)
    assert found == 2 * [raw, (windows, FIELDS + 1, None), (2, FIELDS + 1, None)]
    assert rise_bytes < RISE_BYTES_MAX
