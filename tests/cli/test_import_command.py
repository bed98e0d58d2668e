import gzip
import json

import pytest

from fleetcast.cli.main import run
from fleetcast.transfer.opening import zstd_module

zstd = zstd_module()


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


@pytest.mark.parametrize("header", ["time\r,entity_id", "time," + "x" * 200_000])
def test_a_csv_header_that_cannot_be_read_is_told_in_our_words(fail, tmp_path, header):
    file = tmp_path / "f.csv"
    file.write_text(header + "\n", newline="")
    (line,) = fail("import", "--tenant", "acme", "--format", "csv", file)
    assert f"{file}: its header cannot be read: line 1 has a name with" in line
    assert "131,072 characters" in line


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


def protocol_line(number):
    return f'link,entity_id=l-{number} snr_db=1.5,note="a\nb" {1767225600 + number}'


def test_line_protocol_is_taken_in_its_units(call, tmp_path):
    file = tmp_path / "f.lp"
    lines = ["# a comment", "", protocol_line(1), "link", protocol_line(2), "link,a=b  5", ""]
    file.write_text("\n".join(lines))
    options = ("--tenant", "acme", "--format", "line-protocol", "--time-unit", "s")
    report = call("import", *options, file, status=1)
    assert report["accepted"] == 2
    assert sorted(lines_of(report)) == [5, 8]
    span = ("--start", "2026-01-01", "--end", "2026-01-02")
    call("export", "--tenant", "acme", "--format", "jsonl", *span, tmp_path / "out")
    records = [json.loads(text) for text in (tmp_path / "out").read_text().splitlines()]
    assert records == [
        {
            "measurement": "link",
            "time": f"2026-01-01T00:00:0{number}Z",
            "tags": {"entity_id": f"l-{number}"},
            "fields": {"note": "a\nb", "snr_db": 1.5},
        }
        for number in (1, 2)
    ]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_files_and_damaged_ones(call, fail, tmp_path, ending):
    text = "".join(json.dumps(record()) + "\n" for _ in range(3000)).encode()
    packed = gzip.compress(text) if ending == ".gz" else zstd.compress(text)
    file = tmp_path / f"f.jsonl{ending}"
    file.write_bytes(packed)
    options = ("--tenant", "acme", "--format", "jsonl")
    assert call("import", *options, file)["accepted"] == 3000
    file.write_bytes(packed[: len(packed) // 2])
    assert "cannot be decompressed: it is cut short" in fail("import", *options, file)[-1]
    for wrong in (b"plain", packed[:40] + bytes(8) + packed[48:]):
        file.write_bytes(wrong)
        assert "cannot be decompressed: it is damaged" in fail("import", *options, file)[-1]


def test_standard_input_is_a_hyphen(call, tmp_path, monkeypatch):
    file = tmp_path / "f.jsonl"
    file.write_text(json.dumps(record()) + "\n")
    with file.open() as text:
        monkeypatch.setattr("sys.stdin", text)
        assert call("import", "--tenant", "acme", "--format", "jsonl", "-")["accepted"] == 1


def test_a_check_says_what_would_be_and_stores_nothing(call, tmp_path):
    file = tmp_path / "f.jsonl"
    options = ("--tenant", "acme", "--format", "jsonl")
    file.write_text(json.dumps(record()) + "\n")
    call("import", *options, file)
    lines = [record(fields={"snr_db": "text"}), record(tags={}), record(measurement="x"), record()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    checked = call("import", *options, "--check", file, status=1)
    (row,) = call("stats")["tenants"]
    assert (row["rows"], row["series"]) == (1, 1)
    done = call("import", *options, file, status=1)
    keys = ("accepted", "rejected", "no_entity", "other_measurement", "rejections")
    assert [checked[key] for key in keys] == [done[key] for key in keys]
    assert [done[key] for key in keys[:4]] == [3, 1, 1, 1]


def test_rejects_are_written_with_their_reasons(call, tmp_path):
    file, rejects = tmp_path / "f.jsonl", tmp_path / "rejects"
    lines = [json.dumps(record()), "{", json.dumps(record(fields={})), json.dumps(record())]
    file.write_text("\n".join(lines))
    options = ("--tenant", "acme", "--format", "jsonl", "--rejects", rejects)
    call("import", *options, "--max-rejects", 1, file, status=1)
    call("import", *options, "--max-rejects", 2, file)
    assert [json.loads(text) for text in rejects.read_text().splitlines()] == [
        {"file": str(file), "line": 2, "reason": "is not JSON", "record": "{"},
        {"file": str(file), "line": 3, "reason": "fields: missing", "record": lines[2]},
    ]


def test_rows_that_no_read_shows_are_named(call, capsys, tmp_path):
    file = tmp_path / "f.csv"
    file.write_text("time,snr_db\n2026-01-01T00:00:00Z,1\n2026-01-01T00:01:00Z,1\n")
    options = ("--tenant", "acme", "--format", "csv", "--measurement")
    assert run(["import", *options, "link", str(file)]) == 0
    assert "2 records have no entity_id" in capsys.readouterr().err
    assert run(["import", *options, "speed", "--tag", "entity_id=a", str(file)]) == 0
    assert "2 records are of a measurement that" in capsys.readouterr().err
    assert run(["import", *options, "link", "--tag", "entity_id=a", str(file)]) == 0
    assert "warning" not in capsys.readouterr().err
    assert call("stats")["tenants"][0]["rows"] == 6


def test_a_missing_column_is_said_with_those_that_are_there(fail, tmp_path):
    file = tmp_path / "f.csv"
    file.write_text("when,value\n")
    options = ("--tenant", "acme", "--format", "csv", "--measurement", "link")
    (message,) = fail("import", *options, file)
    assert message.endswith("has no column time (give --time-column); it has when, value")
    (message,) = fail("import", *options, "--time-column", "when", "--rename", "v=x", file)
    assert message.endswith("has no column v; it has when, value")


def test_options_of_tables_are_refused_for_records(fail, tmp_path):
    file = tmp_path / "f.jsonl"
    file.write_text("")
    options = ("--tenant", "acme", "--format", "jsonl", "--measurement", "link")
    assert "has no columns" in fail("import", *options, file)[0]


def test_more_short_rows_than_a_piece_may_have_are_all_there(call, tmp_path):
    file = tmp_path / "f.csv"
    rows = [f"{number},{number % 7}" for number in range(1_700_000_000, 1_700_150_000)]
    rows[70_000] = "1700070000,x"
    file.write_text("\n".join(["t,n", *rows]))
    options = ("--time-column", "t", "--time-unit", "s", "--measurement", "link")
    flags = ("--tenant", "acme", "--format", "csv", *options, "--tag", "entity_id=a")
    report = call("import", *flags, file, status=1)
    assert (report["accepted"], lines_of(report)) == (149_999, {70_002: "has no number in n: 'x'"})
