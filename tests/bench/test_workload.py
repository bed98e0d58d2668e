"""A workload of one's own: rows of a file with times moved, and queries that come with it."""

import gzip
import itertools
import json
import shlex
from dataclasses import replace

import pytest

from fleetcast.bench.drivers import driver
from fleetcast.bench.measuring import measure
from fleetcast.bench.queries import read_queries
from fleetcast.bench.record_lines import records
from fleetcast.bench.texts import lines
from fleetcast.bench.workload import Workload
from fleetcast.bench.workload_file import read_once
from fleetcast.cli.main import run
from fleetcast.engine import format_time, parse_time
from fleetcast.errors import OperatorError
from tests.pages.blocks import blocks
from tests.tidy.files import ROOT

from .forgetful import Forgetful

NOW = parse_time("2026-11-28T00:00:00Z")
FIRST = parse_time("2016-01-01T00:00:00Z")
SECOND = 10**9
SMALL = Workload(rows=400, batch_rows=50, connections=2)
TSBS_TAGS = "fleet=South,driver=Trish,model=H-2,load_capacity=1500"


def tsbs(steps=60, trucks=5):
    """Lines as TSBS writes its "iot" workload for InfluxDB."""
    for step, truck in itertools.product(range(steps), range(trucks)):
        tags, time = f"name=truck_{truck},{TSBS_TAGS}", FIRST + 10 * SECOND * step
        velocity = 0 if truck == 3 else 10 + step
        position = f"latitude={step / 8 + 0.00125},longitude=68.83761,elevation=255i"
        yield f"readings,{tags} {position},velocity={velocity}i {time}\n"
        fuel = 0.05 if truck == 2 else 0.5
        yield f"diagnostics,{tags} fuel_state={fuel},current_load=1000i,status=0i {time}\n"


def record(time, entity="a", **fields):
    tags = {"entity_id": entity, "site": "north"}
    at = format_time(FIRST + time * SECOND) if isinstance(time, int) else time
    return {"measurement": "link", "time": at, "tags": tags, "fields": fields}


@pytest.fixture
def written(tmp_path):
    def write(content, name="rows"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def json_lines(found):
    return "".join(json.dumps(each) + "\n" for each in found)


def test_times_move_so_that_the_last_needed_row_is_of_now(written):
    path = written(
        json_lines(record(f"2020-01-01T00:00:{second:02}.5Z", x=second) for second in (7, 3))
    )
    file = read_once(path, 5, NOW)
    rows = list(itertools.islice(file.rows(), 5))
    # The file spans four seconds, and is read three times, a second apart.
    assert [NOW - row.time_ns for row in rows] == [s * SECOND for s in (10, 14, 5, 9, 0)]
    assert [row.fields for row in rows] == [
        [("x", 7)],
        [("x", 3)],
        [("x", 7)],
        [("x", 3)],
        [("x", 7)],
    ]
    assert rows[0].tags == [("entity_id", "a"), ("site", "north")]


def test_measurements_that_the_service_does_not_read_get_a_free_name(written):
    content = [record(0, x=1.0) | {"measurement": name} for name in ("a", "telemetry", "b")]
    file = read_once(written(json_lines(content)), 10, NOW)
    assert file.stored_as == {"a": "attenuation", "telemetry": "telemetry", "b": "weather"}
    assert next(file.rows()).measurement == "attenuation"


def test_what_cannot_be_written_is_left_out_and_counted(written):
    content = [
        record(0, x=1.0, mode="m", up=True),
        record(0, x=2.0),
        record(1, mode="m"),
        record(2, x=1.0) | {"tags": {"site": "north"}},
        record(3, x=1.0) | {"tags": {"hostname": "h"}},
        record(4),
        record("1999-12-31T23:59:59Z", x=1.0),
    ]
    file = read_once(written(json_lines(content)), 10, NOW)
    assert file.rows_count == 2
    assert file.left_out == {
        "fields that are no numbers": 3,
        "rows of a time that was there before": 1,
        "rows without a number": 1,
        "rows without an entity": 1,
        "rows without fields, or older than the year 2000": 2,
    }
    assert [row.entity for row in itertools.islice(file.rows(), 2)] == ["a", "h"]


def test_lines_are_read_as_the_engine_reads_them(written):
    text = (
        "# a comment\n\n"
        f'a\\ b,host=x\\,\\ y,k\\=1=v w=1i,x=-1.5e3,y="say \\"k=1, z=2\\"\nand more",z=t {FIRST}\n'
        f"a\\ b,host=x w=2u,x=.5 {FIRST - 7}\n"
    )
    found = list(records(written(text)))
    assert [each[:2] for each in found] == [("a b", FIRST), ("a b", FIRST - 7)]
    assert found[0].tags == {"host": "x, y", "k=1": "v"}
    assert found[0].numbers == {"w": 1, "x": -1500}
    assert (found[0].other_fields, found[1].numbers) == (2, {"w": 2, "x": 0.5})


def test_names_come_back_from_line_protocol(written):
    content = [record(5, "a b,c=d", **{'x "y", z=1': 2.5}) | {"measurement": "link"}]
    file = read_once(written(json_lines(content)), 1, NOW)
    row = next(file.rows())
    (found,) = records(written(lines([row]), "again"))
    assert (found.tags, found.numbers) == (dict(row.tags), dict(row.fields))


def test_a_file_is_read_only_as_far_as_its_rows_are_needed(written):
    path = written(json_lines(record(second, x=1.0) for second in range(10)) + "damage\n")
    assert read_once(path, 10, NOW).rows_count == 10
    with pytest.raises(OperatorError, match=r"rows, line 11: is not JSON$"):
        read_once(path, 11, NOW)


@pytest.mark.parametrize("changed", ["", json_lines([record(0, x=1) | {"measurement": "other"}])])
def test_a_file_that_changes_is_a_fault(changed, written):
    path = written(json_lines([record(0, x=1)]))
    rows = read_once(path, 10, NOW).rows()
    assert next(rows).entity == "a"
    path.write_text(changed)
    with pytest.raises(OperatorError, match=r"rows was changed while it was read$"):
        next(rows)


FAULTY_FILES = [
    ("", "rows", "rows has no row that can be written"),
    (json_lines([record(0, x="y") | {"tags": {"site": "north"}}]), "rows", "; 1 rows without an"),
    ("readings,name=a x=1 5\nreadings,name=a x= 5\n", "rows", "line 2: fields.x: Input should be"),
    ("readings,name=a x=1\n", "rows", "line 1: has no time"),
    ("readings,name=a x=1_0 5\n", "rows", "line 1: fields.x: Input should be a boolean, a number"),
    ("readings,name=a x=1e999 5\n", "rows", "line 1: fields.x: Input should be a finite number"),
    (b"readings,name=\xff x=1 5\n", "rows", "line 1: Line should be line protocol in UTF-8"),
    ("x" * (80 << 20), "rows", "line 1: is longer than"),
    (json_lines([record("soon", x=1)]), "rows", "line 1: time: Input should be an ISO 8601"),
    ('{"measurement": "a"}\n', "rows", "line 1: time: Field required"),
    (json_lines([record(0, x=1) | {"tags": {"entity_id": 1}}]), "rows", "line 1: tags.entity_id: "),
    (json_lines([record(0, x=1) | {"fields": [1]}]), "rows", "line 1: fields: Input should be"),
    (json_lines([record(0, x=10**400)]), "rows", "line 1: fields.x: Input should be a finite"),
    (json_lines(record(s, x=1) for s in (0, 10**9)), "rows", "older than the year 2000"),
    (json_lines(record(0, x=1) | {"measurement": m} for m in "abcdefg"), "rows", "more than 6"),
    (json_lines([record(0, **{f"x{n}": n for n in range(1_001)})]), "rows", "more than 1,000"),
    ("plain", "rows.gz", "cannot be decompressed"),
    (gzip.compress(b"a,name=b x=1 1\n" * 99, mtime=0)[:-9], "rows.gz", "it is cut short"),
]


@pytest.mark.parametrize(
    ("content", "name", "said"), FAULTY_FILES, ids=[said for *_, said in FAULTY_FILES]
)
def test_a_bad_file_is_one_line_and_starts_no_database(
    content, name, said, written, tmp_path, capsys
):
    path = written(content, name)
    options = ["--workload", str(path), "--output", str(tmp_path / "o.json")]
    assert run(["bench", "sqlite", *options, "--folder", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fleetcast: {path}")
    assert said in line
    assert not (tmp_path / "o.json").exists()


@pytest.mark.parametrize("option", ["--workload", "--queries"])
def test_a_missing_file_is_one_line(option, tmp_path, capsys):
    assert run(["bench", "sqlite", option, str(tmp_path / "none")]) == 1
    assert run(["bench", "sqlite", option, str(tmp_path)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n", "has no queries"),
        ("{", "line 1: is not JSON"),
        ('{"query": "newest"}', "line 1: is no query"),
        ('{"query": "last-loc", "fleet": "South"}', "line 1: is no query"),
        ('{"query": "high-load"}', "line 1: is no query: there are newest, window, last-loc"),
        (
            '{"query": "newest", "measurement": "cpu"}',
            "no row of the workload is of the measurement",
        ),
        (
            '{"query": "window", "measurement": "link", "entities": ["a"], "start": "x", "end": 1}',
            "its start or end is no time",
        ),
        ('{"query": "low-fuel"}', "no measurement of the workload has the field fuel_state"),
    ],
)
def test_a_bad_query_is_one_line(text, said, written):
    file = read_once(written(json_lines([record(0, x=1)])), 1, NOW)
    with pytest.raises(OperatorError) as caught:
        read_queries(written("\n" * ("line 1" not in said) + text, "queries"), file.names, file)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def own_workload(written):
    file = read_once(written("".join(tsbs())), SMALL.rows_max, NOW)
    queries = read_queries(written(page_example()[1], "queries"), file.names, file)
    return replace(SMALL, file=file, queries=queries)


def page_example():
    """The command of the page about rows of one's own, and its queries."""
    found = blocks(ROOT / "docs" / "bench.md")
    (command,) = [each.text for each in found if "--workload" in each.text]
    (queries,) = [each.text for each in found if each.language == "json"]
    return command, queries


@pytest.mark.parametrize("name", ["sqlite", "embedded"])
def test_queries_are_answered_from_rows_of_a_file(name, written, tmp_path):
    workload = own_workload(written)
    found = measure(driver(name, tmp_path / name, {}, workload.names), workload, print)
    assert found["answers"] == {
        **dict.fromkeys(("missing", "unknown", "wrong", "newest_wrong", "queries_wrong"), 0),
        "compared": 400,
    }
    assert found["kill"]["lost_rows"] == 0
    answered = {query: figures["rows"] / 20 for query, figures in found["queries"].items()}
    assert answered == {
        "1 newest": 5,
        "2 window": 1,
        "3 last-loc": 5,
        "4 low-fuel": 1,
        "5 stationary-trucks": 1,
    }


def test_a_wrong_answer_to_a_query_is_counted(written, tmp_path):
    base = Forgetful(tmp_path / "forgetful", {})
    workload = own_workload(written)
    base.names = workload.names
    assert measure(base, workload, print)["answers"]["queries_wrong"] >= 1


def test_the_example_of_the_page_runs(tmp_path, monkeypatch, capsys):
    command, queries = page_example()
    program, *arguments = shlex.split(command)
    assert program == "fleetcast"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iot.lp.gz").write_bytes(gzip.compress("".join(tsbs(400)).encode()))
    (tmp_path / "queries.jsonl").write_text(queries)
    assert run([*arguments, "--rows", "1000", "--batch", "100", "--output", "o.json"]) == 0
    document = json.loads((tmp_path / "o.json").read_text())
    assert document["workload"]["file"]["stored_as"].keys() == {"readings", "diagnostics"}
    assert {len(each["queries"]) for each in document["databases"].values()} == {5}
    assert {each["answers"]["queries_wrong"] for each in document["databases"].values()} == {0}
    capsys.readouterr()
    assert run(["bench", "compare", "o.json", "o.json"]) == 0
    assert "queries.4 low-fuel.p50" in capsys.readouterr().out
