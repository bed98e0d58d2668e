"""N2, N3: names of a tenant are bounded whoever registers them, and cost their bytes."""

from __future__ import annotations

import json
import multiprocessing
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Engine
from fleetcast.errors import Refused, TenantFull
from tests.waiting import PATIENCE_SECONDS

from .test_properties import MASTER_KEY, TENANT, to_body

if TYPE_CHECKING:
    from pathlib import Path

NOW_NS = 1_790_000_000_000_000_000
FIELDS_MAX, SERIES_MAX = 100, 40
BATCHES, BATCH_FIELDS = 40, 5


def row(entity: str, names: list[str], measurement: str = "link") -> dict:
    fields = dict.fromkeys(names, 1.5)
    tags = {"entity_id": entity}
    return {"measurement": measurement, "time_ns": NOW_NS, "tags": tags, "fields": fields}


def register(directory: Path, process: int, start, results) -> None:
    """Batches of new fields, then of new series, until each bound has refused some."""
    engine = Engine(directory, MASTER_KEY)
    plane = engine.plane("shared", TENANT)
    limits = {"tenant_fields_max": FIELDS_MAX, "tenant_series_max": SERIES_MAX}
    stored = {"fields": 0, "tags": 0}
    start.wait()
    for batch in range(BATCHES):
        names = [f"{process}-{batch}-{field}" for field in range(BATCH_FIELDS)]
        for kind, record in (("fields", row("e", names)), ("tags", row(names[0], ["shared"]))):
            try:
                plane.write_json(to_body([record]), now_ns=NOW_NS, **limits)
            except TenantFull:
                continue
            stored[kind] += 1
    engine.close()
    results.put(stored)


def test_n2_processes_that_register_at_once_do_not_pass_a_bound_together(tmp_path) -> None:
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("shared")
    engine.plane("shared", TENANT).write_json(to_body([row("e", ["shared"])]), now_ns=NOW_NS)
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(2), context.Queue()
    writers = [
        context.Process(target=register, args=(tmp_path, number, start, results))
        for number in range(2)
    ]
    for writer in writers:
        writer.start()
    stored = [results.get(timeout=PATIENCE_SECONDS) for _ in writers]
    for writer in writers:
        writer.join()
    assert sum(one["fields"] for one in stored) == (FIELDS_MAX - 1) // BATCH_FIELDS
    assert sum(one["tags"] for one in stored) == SERIES_MAX - 1
    assert engine.plane("shared", TENANT).stats().series == SERIES_MAX
    engine.close()


def test_n3_a_long_measurement_is_not_stored_with_each_of_its_fields(tmp_path) -> None:
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("a")
    names = [f"f{number}" for number in range(2000)]
    long = "m" * 100_000
    records = [row("e", names, long), row("e", names[:2], "link"), row("e", ["more"], long)]
    plane = engine.plane("a", TENANT)
    plane.write_json(to_body(records), now_ns=NOW_NS)
    assert plane.stats().stored_bytes < 10 * len(to_body(records))
    engine.close()

    plane = engine.plane("a", TENANT)
    plane.write_json(to_body(records), now_ns=NOW_NS, tenant_fields_max=1)
    seen = json.loads(plane.latest_json(as_of_ns=NOW_NS + 1, now_ns=NOW_NS + 1))
    fields = {entity["measurement"]: set(entity["fields"]) for entity in seen["entities"]}
    assert fields == {long: {*names, "more"}, "link": set(names[:2])}
    for record in records:
        name = list(record["fields"])[-1]
        record["fields"] = {name: "x"}
        with pytest.raises(Refused) as refused:
            plane.write_json(to_body([record]), now_ns=NOW_NS)
        assert refused.value.args == ("field_type_conflict", {"field": name})
    engine.close()
