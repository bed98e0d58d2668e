import json

import pytest


@pytest.fixture(autouse=True)
def acme(call):
    return call("tenant", "create", "acme")


def record(**changes):
    return {
        "measurement": "link",
        "time": "2026-01-01T00:00:00Z",
        "tags": {"entity_id": "l-1"},
        "fields": {"snr_db": 1.5},
    } | changes


def lines_of(report):
    return {row["line"]: row["reason"] for row in report["rejections"]}


def test_jsonl_is_stored_whole(call, tmp_path):
    file = tmp_path / "f.jsonl"
    file.write_text("".join(json.dumps(record()) + "\n" for _ in range(2500)))
    report = call("import", "--tenant", "acme", "--format", "jsonl", file)
    assert (report["accepted"], report["rejected"]) == (2500, 0)
    (row,) = call("stats")["tenants"]
    assert (row["tenant"], row["rows"], row["values"], row["series"]) == ("acme", 2500, 2500, 1)
    assert row["bytes_per_value"] == round(row["stored_bytes"] / 2500, 3)


def test_n1_n2_bounds_cost_the_lines_that_pass_them(call, data, tmp_path):
    bounds = "[limits]\nfields_max = 3\ntenant_fields_max = 4\ntenant_series_max = 2\n"
    with (data / "fleetcast.toml").open("a") as settings:
        settings.write(bounds)
    lines = [
        record(),
        record(fields=dict.fromkeys("abcd", 1)),
        record(fields=dict.fromkeys("abc", 1)),
        record(fields={"d": 1}),
        record(tags={"entity_id": "l-2"}),
        record(tags={"entity_id": "l-3"}),
        record(fields={"a": 2}),
    ]
    file = tmp_path / "f.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = call("import", "--tenant", "acme", "--format", "jsonl", file, status=1)
    assert lines_of(report) == {
        2: "fields: more than limits.fields_max",
        4: "fields: as many as the tenant may have are there",
        6: "tags: as many as the tenant may have are there",
    }
    assert report["accepted"] == 4


def test_rejections_come_with_line_and_reason(call, tmp_path):
    given = {
        1: json.dumps(record()),
        2: "{",
        3: "",
        4: "[]",
        5: json.dumps(record(measurement="")),
        6: json.dumps(record(fields={})),
        7: json.dumps(record(time="1999-12-31T23:59:59Z")),
        8: json.dumps(record(time="soon")),
        9: json.dumps(record(tags={f"t{n}": "x" for n in range(65)})),
        10: json.dumps(record(fields={"snr_db": "text"})),
        11: json.dumps(record()) + "," + json.dumps(record()),
        12: '{"measurement": "' + "x" * 1_048_576 + '"}',
        13: json.dumps(record()),
    }
    file = tmp_path / "f.jsonl"
    file.write_text("\n".join(given.values()))
    report = call("import", "--tenant", "acme", "--format", "jsonl", file, status=1)
    reasons = lines_of(report)
    assert report["accepted"] == 2
    assert sorted(reasons) == [2, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert report["rejected"] == sum(report["reasons"].values()) == 10
    assert reasons[6] == "fields: missing"
    assert reasons[7] == "time: before 2000-01-01T00:00:00Z"
    assert "snr_db" in reasons[10]


def test_csv_columns_become_tags_and_fields(call, tmp_path):
    file = tmp_path / "f.csv"
    file.write_text(
        "measurement,time,entity_id,entity_type,snr_db,up,note\n"
        'link,2026-01-01T00:00:00Z,l-1,link,12.5,true,"a, b"\n'
        "link,2026-01-01T00:01:00Z,l-1,,nan,,x\n"
        "link,2026-01-01T00:02:00Z,l-1\n"
        "link,2026-01-01T00:03:00Z,l-1,link,1e999,,\n"
        "link,2026-01-01T00:04:00Z,l-1,link,,,\n"
    )
    report = call("import", "--tenant", "acme", "--format", "csv", file, status=1)
    assert report["accepted"] == 2
    assert sorted(lines_of(report)) == [4, 5, 6]
    (row,) = call("stats")["tenants"]
    assert (row["rows"], row["values"], row["series"]) == (2, 4, 2)


def test_csv_flags_name_the_measurement_and_the_tags(call, tmp_path):
    file = tmp_path / "f.csv"
    file.write_text("time,pool,offered_bytes\n2026-01-01T00:00:00Z,p-1,7\n")
    flags = ("--measurement", "pool_interval", "--tag-column", "pool", "--tag", "site=a")
    assert call("import", "--tenant", "acme", "--format", "csv", *flags, file)["accepted"] == 1


def test_csv_without_its_columns_is_refused(fail, tmp_path):
    file = tmp_path / "f.csv"
    file.write_text("time,snr_db\n2026-01-01T00:00:00Z,1\n")
    (line,) = fail("import", "--tenant", "acme", "--format", "csv", file)
    assert "measurement" in line
    assert line.endswith("; it has time, snr_db")


def test_nothing_imported_is_a_failure(call, tmp_path):
    file = tmp_path / "f.jsonl"
    file.write_text("{\n")
    report = call("import", "--tenant", "acme", "--format", "jsonl", file, status=1)
    assert (report["accepted"], report["rejected"]) == (0, 1)


def test_an_unknown_tenant_is_refused(fail, tmp_path):
    file = tmp_path / "f.jsonl"
    file.write_text("")
    assert "nobody" in fail("import", "--tenant", "nobody", "--format", "jsonl", file)[0]
