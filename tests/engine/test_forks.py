"""A child that was forked while its parent reads: what it inherits of streams ends nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Engine, RowStream, encode_records, format_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleetcast.engine import Plane

DAY_NS = 86_400_000_000_000
END_NS = 20_700 * DAY_NS
MASTER_KEY = bytes(range(32))
DAYS = 3
LOG_VALUES = (1 << 20) + 1  # more than a scan sorts in memory: its stream has a file of its own


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("a1")
    yield engine.plane("a1", "acme")
    engine.close()


def write(plane: Plane, *, rows: int, fields: int = 1) -> None:
    """Stores `rows` records that spread over `DAYS` days."""
    body = encode_records(
        [
            {
                "measurement": "link",
                "time": format_time(END_NS - (row + 1) * DAYS * DAY_NS // rows),
                "tags": {"entity_id": "e"},
                "fields": {f"f{field}": float(row) for field in range(fields)},
            }
            for row in range(rows)
        ]
    )
    plane.write_json(body, batch_records_max=rows, now_ns=END_NS)


def rows_of(stream: RowStream) -> int:
    return sum(len(batch) for batch in stream)


def dropped_by_a_child(streams: list[RowStream]) -> None:
    """Forks a child, which drops what it has inherited and ends."""
    child = os.fork()
    if not child:
        streams.clear()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_stream_goes_on_beside_a_compaction_after_a_child_dropped_its_copy(plane):
    write(plane, rows=30)
    plane.compact(whole=True, now_ns=END_NS)
    streams = [plane.scan(END_NS - DAYS * DAY_NS, END_NS, now_ns=END_NS)]
    dropped_by_a_child(streams)
    write(plane, rows=30)
    plane.compact(whole=True, now_ns=END_NS)
    assert rows_of(streams[0]) == 30


def test_a_stream_keeps_its_own_files_after_a_child_dropped_its_copy(plane):
    rows, fields = 1_100, 1_000
    assert rows * fields > LOG_VALUES
    write(plane, rows=rows, fields=fields)
    write(plane, rows=1)
    streams = [plane.scan(END_NS - DAYS * DAY_NS, END_NS, now_ns=END_NS)]
    dropped_by_a_child(streams)
    assert rows_of(streams[0]) == rows + 1
