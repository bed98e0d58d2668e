import json

from fleetcast.cli.main import run

RECORDS = [
    {
        "measurement": measurement,
        "time": f"2026-01-01T00:00:0{second}Z",
        "tags": {"entity_id": entity, "site": "a"},
        "fields": {"x": value},
    }
    for second, (measurement, entity, value) in enumerate(
        [("link", "l-1", 1.5), ("link", "l-2", 2.5), ("weather", "w", True)]
    )
]


def test_what_is_stored_is_said_and_can_be_narrowed(call, capsys, tmp_path):
    call("tenant", "create", "acme")
    assert call("describe", "acme") == {"tenant": "acme", "measurements": {}}
    file = tmp_path / "f.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    call("import", "--tenant", "acme", "--format", "jsonl", file)
    found = call("describe", "acme")["measurements"]
    assert found["link"] == {
        "rows": 2,
        "first": "2026-01-01T00:00:00Z",
        "last": "2026-01-01T00:00:01Z",
        "series": 2,
        "entities": {"count": 2, "first": ["l-1", "l-2"]},
        "tags": {"site": {"count": 1, "first": ["a"]}},
        "fields": {"x": "float"},
    }
    assert found["weather"]["fields"] == {"x": "bool"}
    narrowed = call("describe", "acme", "--measurement", "link", "--entity", "l-2")
    assert narrowed["measurements"].keys() == {"link"}
    assert narrowed["measurements"]["link"]["rows"] == 1
    assert run(["describe", "acme"]) == 0
    assert "link\n  rows      2\n" in capsys.readouterr().out


def test_cells_of_csv_have_the_types_of_their_fields(call, tmp_path):
    call("tenant", "create", "acme")
    file = tmp_path / "f.csv"
    options = ("--tenant", "acme", "--format", "csv", "--measurement", "link")
    file.write_text("time,serial,n\n2026-01-01T00:00:00Z,a7,1\n")
    call("import", *options, "--tag", "entity_id=a", file)
    file.write_text("time,serial,n\n2026-01-01T00:00:01Z,12,x\n2026-01-01T00:00:02Z,12,2\n")
    report = call("import", *options, "--tag", "entity_id=a", file, status=1)
    assert report["rejections"][0] | {"file": ""} == {
        "file": "",
        "line": 2,
        "reason": "has no number in n: 'x'",
    }
    assert report["accepted"] == 1
