"""Stores of releases stay readable (docs/format.md, "Versions")."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Engine
from fleetcast.errors import Refused
from tests.engine.strategies import NOW_NS
from tests.engine.test_properties import same

from .make import HERE, LATEST, MASTER_KEY, SERIES, TENANT

if TYPE_CHECKING:
    from pathlib import Path

STORES = sorted(path.parent.name for path in HERE.glob("*/answers.json"))


@pytest.fixture(params=STORES)
def store(request, tmp_path: Path) -> tuple[Engine, dict]:
    shutil.copytree(HERE / request.param, tmp_path / "planes")
    engine = Engine(tmp_path / "planes", MASTER_KEY)
    engine.bind_plane("plane")
    yield engine, json.loads((HERE / request.param / "answers.json").read_text())
    engine.close()


def assert_answers(engine: Engine, expected: dict, account_id: str = "plane") -> None:
    plane = engine.plane(account_id, TENANT)
    for query, answer in zip(LATEST, expected["latest"], strict=True):
        assert same(json.loads(plane.latest_json(**query, now_ns=NOW_NS)), answer, exact=True)
    for query, answer in zip(SERIES, expected["series"], strict=True):
        found = json.loads(plane.series_json(**query, now_ns=NOW_NS))
        assert same(found, answer, exact=query.get("agg") != "mean"), query


def hidden_rows(expected: dict) -> int:
    """Rows that a delete of that store hides and no compaction has removed."""
    return expected.get("hidden_rows", 0)


def test_it_opens_is_sound_and_answers_as_it_did(store) -> None:
    engine, expected = store
    found = engine.verify("plane")
    assert (found.damages, found.rows) == ([], expected["rows"] + hidden_rows(expected))
    assert found.segments > 1
    assert found.blocks > 0
    assert_answers(engine, expected)


def test_it_can_be_written_on(store) -> None:
    """Segments of an older version are merged into what this one writes."""
    engine, expected = store
    engine.plane("plane", TENANT).compact(whole=True, now_ns=NOW_NS)
    assert_answers(engine, expected)
    found = engine.verify("plane")
    assert (found.damages, found.rows, found.blocks) == ([], expected["rows"], 0)


def test_its_names_keep_their_ids_and_types(store) -> None:
    """Names are looked up among those of the older version, and numbered behind them."""
    engine, expected = store
    plane = engine.plane("plane", TENANT)
    before = plane.stats()

    def body(entity: str, value: object) -> bytes:
        return json.dumps(
            [
                {
                    "measurement": "link",
                    "time": "2020-01-01T00:00:00Z",
                    "tags": {"entity_id": entity, "site": "x"},
                    "fields": {"snr_db": value},
                }
            ]
        ).encode()

    plane.write_json(body("e0", 1.5), now_ns=NOW_NS)
    assert plane.stats().series == before.series
    with pytest.raises(Refused, match="field_type_conflict"):
        plane.write_json(body("new", "text"), now_ns=NOW_NS)
    plane.write_json(body("new", 2.5), now_ns=NOW_NS)
    assert plane.stats().series == before.series + 1
    engine.close()
    found = engine.verify("plane")
    assert (found.damages, found.rows) == ([], expected["rows"] + hidden_rows(expected) + 2)


def test_there_is_one_of_each_version() -> None:
    assert {"0.3.0"} <= set(STORES)
