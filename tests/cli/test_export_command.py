import json
import signal
import subprocess
import sys
import time

import pytest

COMMAND = [sys.executable, "-c", "from fleetcast.cli import main; main()", "export"]
SPAN = ("--start", "2026-01-01", "--end", "2026-01-02")


def record(number, **changes):
    return {
        "measurement": "link",
        "time": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
        "tags": {"entity_id": f"l-{number % 3}", "site": "a"},
        "fields": {"number": float(number), "up": number % 2 == 0},
    } | changes


@pytest.fixture
def stored(call, tmp_path):
    call("tenant", "create", "acme")
    records = [record(number) for number in range(600)]
    records.append(record(600, tags={}, measurement="speed"))
    file = tmp_path / "f.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in records))
    call("import", "--tenant", "acme", "--format", "jsonl", file)
    return records


def exported(call, file, *options):
    answer = call("export", "--tenant", "acme", "--format", "jsonl", *SPAN, *options, file)
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    assert answer == {"tenant": "acme", "file": str(file), "rows": len(lines)}
    return sorted(lines, key=lambda line: line["time"])


def test_every_row_is_there_and_a_choice_is_kept_to(call, stored, tmp_path):
    file = tmp_path / "out"
    assert exported(call, file) == stored
    chosen = exported(call, file, "--measurement", "link", "--entity", "l-1", "--entity", "l-2")
    assert chosen == [line for line in stored[:-1] if line["tags"]["entity_id"] != "l-0"]
    assert exported(call, file, "--measurement", "nothing") == []


def test_standard_output_holds_the_rows_alone(stored):
    command = [*COMMAND, "--tenant", "acme", "--format", "csv", *SPAN, "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    header, *rows = done.stdout.decode().splitlines()
    assert header == (
        "time|dateTime:RFC3339,measurement|measurement,entity_id|tag,site|tag,"
        "number|double,up|boolean"
    )
    assert len(rows) == len(stored)
    assert done.stderr.decode() == f"fleetcast: {len(stored)} rows exported\n"


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@pytest.mark.usefixtures("data", "stored")
def test_a_killed_export_leaves_no_file_and_the_next_one_is_whole(call, tmp_path, form):
    file = tmp_path / "out"
    command = [*COMMAND, "--tenant", "acme", "--format", form, *SPAN, str(file)]
    process = subprocess.Popen(command)
    while process.poll() is None and not (tmp_path / "out.part").exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    killed = process.wait() != 0
    assert killed or file.exists()
    # It may have been killed behind its last act.
    whole = file.read_bytes() if file.exists() else None
    assert call("export", "--tenant", "acme", "--format", form, *SPAN, file)["rows"] == 601
    assert whole in (None, file.read_bytes())
    assert not (tmp_path / "out.part").exists()


def test_a_start_behind_the_end_is_refused(fail, stored, tmp_path):
    span = ("--start", "2026-01-02", "--end", "2026-01-01")
    (message,) = fail("export", "--tenant", "acme", "--format", "csv", *span, tmp_path / "out")
    assert message == "fleetcast: --start must be before --end"
    assert stored


def test_any_number_of_fields_leaves_as_json_lines_and_comes_back(call, fail, tmp_path):
    """Rows with more than 4,096 fields could be exported in no format, whatever was chosen."""
    call("tenant", "create", "acme")
    call("tenant", "create", "twin")
    file, out = tmp_path / "rows.jsonl", tmp_path / "out"
    rows = [
        record(row, fields={f"f{at}": float(at) for at in range(row * 4000, row * 4000 + 4000)})
        for row in range(2)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    call("import", "--tenant", "acme", "--format", "jsonl", file)
    assert exported(call, out) == rows
    call("import", "--tenant", "twin", "--format", "jsonl", out)
    call("export", "--tenant", "twin", "--format", "jsonl", *SPAN, file)
    assert file.read_text() == out.read_text()
    for form in ("csv", "parquet"):
        (message,) = fail("export", "--tenant", "acme", "--format", form, *SPAN, tmp_path / "no")
        assert message == (
            "fleetcast: the rows have 8000 fields, and a table has columns for 4096 at most: "
            "use --format jsonl, or fewer of them with --measurement"
        )
    assert not (tmp_path / "no").exists()
