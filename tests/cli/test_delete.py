"""`fleetcast delete`: a look first, one line in the audit log, and no row left."""

import json

import pytest

LINES = "".join(
    json.dumps(
        {
            "measurement": measurement,
            "time": f"2026-09-0{day}T12:00:00Z",
            "tags": {"entity_id": entity},
            "fields": {"snr_db": 1.5},
        }
    )
    + "\n"
    for day in (1, 2, 3)
    for measurement, entity in (("link", "a"), ("link", "b"), ("weather", "a"))
)
RANGE = ("--tenant", "acme", "--start", "2026-09-02", "--end", "2026-09-03T12:00:00.000000001Z")


@pytest.fixture
def stored(call, tmp_path):
    call("tenant", "create", "acme")
    (tmp_path / "rows.jsonl").write_text(LINES)
    call("import", "--tenant", "acme", "--format", "jsonl", tmp_path / "rows.jsonl")


def rows(call) -> int:
    everything = ("--start", "1970-01-01", "--end", "2100-01-01")
    return call("delete", "--tenant", "acme", *everything, "--dry-run")["rows"]


def audited(data) -> list[dict]:
    lines = map(json.loads, (data / "audit.log").read_text().splitlines())
    return [line for line in lines if line["event"] == "rows deleted"]


@pytest.mark.usefixtures("stored")
def test_a_dry_run_says_what_the_delete_then_does(call, data) -> None:
    narrowed = ("--entity", "a", "--entity", "ghost", "--measurement", "link")
    dry = call("delete", *RANGE, *narrowed, "--dry-run")
    assert dry == {
        "tenant": "acme",
        "dry_run": True,
        "rows": 2,
        "hours": 0,
        "entities": 1,
        "measurements": ["link"],
        "first": "2026-09-02T12:00:00Z",
        "last": "2026-09-03T12:00:00Z",
    }
    assert (rows(call), audited(data)) == (9, [])
    assert call("delete", *RANGE, *narrowed, "--yes") == {**dry, "dry_run": False}
    assert call("delete", *RANGE, "--yes")["rows"] == 4
    assert call("delete", *RANGE, "--yes")["rows"] == rows(call) - 3 == 0
    first, second, third = audited(data)
    assert {name: first[name] for name in ("tenant", "start", "end", "rows")} == {
        "tenant": "acme",
        "start": "2026-09-02T00:00:00Z",
        "end": "2026-09-03T12:00:00.000000001Z",
        "rows": 2,
    }
    assert (first["entities_named"], first["measurements_named"]) == (2, 1)
    assert (first["audit"], second["rows"], third["rows"]) == (True, 4, 0)
    assert "ghost" not in (data / "audit.log").read_text()
    assert call("stats")["tenants"][0]["rows"] == 9
    call("compact")
    (held,) = call("stats")["tenants"]
    assert held["rows"] == 3
    assert call("verify")["tenants"][0]["damages"] == []


@pytest.mark.usefixtures("stored")
def test_a_delete_is_asked_for_twice_and_in_full(call, fail) -> None:
    (line,) = fail("delete", *RANGE)
    assert "--dry-run" in line
    assert "--yes" in line
    (line,) = fail("delete", *RANGE[:4], "--yes", status=2)
    assert "--end" in line
    (line,) = fail("delete", *RANGE[:4], "--end", "2026-09-02", "--yes")
    assert "before" in line
    (line,) = fail("delete", *RANGE[:4], "--end", "tomorrow", "--yes")
    assert "not a time" in line
    (line,) = fail("delete", "--tenant", "nobody", *RANGE[2:], "--yes")
    assert "nobody" in line
    assert rows(call) == 9
