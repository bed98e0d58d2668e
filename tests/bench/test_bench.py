"""`fleetcast bench`: the same seed gives the same rows, and what is lost or wrong is found."""

import contextlib
import itertools
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from fleetcast.bench.drivers import DRIVERS, driver
from fleetcast.bench.load import load
from fleetcast.bench.measuring import interval_of, is_known, latency_of, measure
from fleetcast.bench.processes import kill_below
from fleetcast.bench.report import page
from fleetcast.bench.trucks import NAMES, START, STEP_SECONDS, Trucks
from fleetcast.bench.truth import Truth
from fleetcast.bench.workload import Workload
from fleetcast.cli.main import run
from fleetcast.errors import OperatorError

from .forgetful import Forgetful

SMALL = Workload(rows=2_000, batch_rows=100, connections=2, trucks=20, seed=7)


def rows(count, seed, joining=0.05):
    fleet = Trucks(50, joining=joining, seed=seed)
    return list(itertools.islice(fleet.rows(START), count))


def test_a_seed_gives_its_rows_again():
    assert rows(2_000, seed=3) == rows(2_000, seed=3)
    assert rows(2_000, seed=3) != rows(2_000, seed=4)


def test_rows_come_late_and_new_trucks_come():
    found = rows(5_000, seed=3)
    times = [row.time_ns for row in found]
    assert times != sorted(times)
    assert max(b - a for a, b in itertools.pairwise(sorted(set(times)))) == STEP_SECONDS * 10**9
    assert len({row.entity for row in found}) > 50
    assert {len(row.fields) for row in found} == {2, 3, 6, 7}
    keys = [(row.measurement, row.entity, row.time_ns) for row in found]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", ["sqlite", "embedded"])
def test_a_database_that_keeps_its_word_is_right_and_loses_nothing(name, tmp_path):
    found = measure(driver(name, tmp_path / name, {}), SMALL, print)
    assert found["answers"]["compared"] == 2_000
    assert sum(found["answers"].values()) == 2_000
    assert found["kill"]["lost_rows"] == 0
    assert found["kill"]["torn_batches"] == 0
    assert found["kill"]["acknowledged_rows"] >= 100
    assert found["synced"]["verdict"].partition(":")[0] in {"yes", "unknown"}


# Programs that a machine may have, with the options of their drivers.
PROGRAMS = {
    "prometheus": {"bin": shutil.which("prometheus")},
    "victoriametrics": {"bin": shutil.which("victoria-metrics")},
    "questdb": {"jar": os.environ.get("QUESTDB_JAR")},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_another_server_answers_with_the_rows_that_were_written(name, tmp_path):
    if None in PROGRAMS[name].values():
        pytest.skip("its program is not here")
    found = measure(driver(name, tmp_path / name, PROGRAMS[name]), SMALL, print)
    assert found["answers"]["compared"] == 2_000
    assert sum(found["answers"].values()) == 2_000
    assert found["kill"]["acknowledged_rows"] >= 100


@pytest.mark.parametrize(
    ("seconds", "p50", "p99"),
    [([2.0, 1.0], 1.5, 2.0), ([*range(1, 101)], 50.5, 99), ([*range(1, 201)], 100.5, 198)],
)
def test_one_batch_in_a_hundred_is_above_p99(seconds, p50, p99):
    found = latency_of(seconds)
    assert (found["p50"], found["p99"], found["max"]) == (p50, p99, max(seconds))


def test_each_latency_is_in_the_bucket_of_the_first_bound_that_it_does_not_exceed():
    found = latency_of([20.0, 0.0001, 0.5])
    counted = [
        bound for bound, count in zip(found["bounds"], found["counts"][:-1], strict=True) if count
    ]
    assert counted[0] == 0.0001
    assert counted[1] >= 0.5 > max(bound for bound in found["bounds"] if bound < counted[1])
    assert (len(counted), found["counts"][-1], sum(found["counts"])) == (2, 1, 3)


def test_what_is_lost_or_altered_is_counted(tmp_path):
    found = measure(Forgetful(tmp_path / "forgetful", {}), SMALL, print)
    # Each of two connections has ten batches of a hundred rows, and forgets three.
    assert found["answers"]["missing"] == 600
    assert found["answers"]["wrong"] > 0
    assert found["kill"]["lost_rows"] > 0


def test_rows_that_nobody_wrote_are_counted(tmp_path):
    base = driver("sqlite", tmp_path / "sqlite", {})
    known, extra = rows(300, seed=1), rows(400, seed=1)
    truth = Truth(NAMES)
    truth.add(known)
    base.start()
    try:
        session = base.connect()
        session.write(base.encode(extra))
        found = truth.compare(session)
        session.close()
    finally:
        base.stop()
    start, end = truth.span()
    names = {(row.measurement, row.entity) for row in known}
    beyond = [
        row
        for row in extra[300:]
        if (row.measurement, row.entity) in names and start <= row.time_ns < end
    ]
    assert found.unknown == len(beyond) > 0


def test_the_command_writes_figures_and_a_page_that_fetches_nothing(tmp_path, capsys):
    output = tmp_path / "figures.json"
    options = ["--rows", "1000", "--batch", "100", "--trucks", "20", "--output", str(output)]
    assert run(["bench", "sqlite", "sqlite", *options, "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("\nsqlite") == 2
    document = json.loads(output.read_text())
    assert list(document["databases"]) == ["sqlite", "sqlite 2"]
    assert [each["kill"]["lost_rows"] for each in document["databases"].values()] == [0, 0]
    text = output.with_suffix(".html").read_text()
    assert json.dumps(document["workload"]) in text
    fetched = r"""(?:src|href)\s*=|url\(|@import|fetch\(|XMLHttpRequest|https?:"""
    assert set(re.findall(fetched, text)) <= {"http:"}
    assert re.findall(r"http:\S*", text) == ['http://www.w3.org/2000/svg",']
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_load_is_repeated_after_a_warm_up_and_followed_by_an_open_loop(tmp_path):
    workload = replace(SMALL, rows=200, warm_up_rows=300, repeats_max=7, precision=1e-9, rate=2_000)
    found = measure(driver("sqlite", tmp_path / "sqlite", {}), workload, print)
    assert len(found["load"]["rows_per_second_of_repeats"]) == 7
    assert found["load"]["rows"] == 7 * 200
    low, high = found["load"]["rows_per_second_interval"]
    assert low <= found["load"]["rows_per_second"] <= high
    assert found["open"]["rate"] == 2_000
    assert found["open"]["rows_per_second"] <= 4_000  # two batches, due 0.05 s apart
    assert found["answers"]["compared"] == 300 + 7 * 200 + 200


class Sleeper:
    """A database that keeps nothing, and answers after some seconds."""

    def __init__(self, seconds):
        self._seconds = seconds

    def connect(self):
        return self

    def write(self, _payload):
        time.sleep(self._seconds)

    def close(self):
        pass


def test_a_batch_of_an_open_loop_counts_from_when_it_was_due():
    done = load(Sleeper(0.05), [b""] * 5, 1, batches_per_second=1e6)
    assert sorted(done.latencies) == done.latencies
    assert done.latencies[4] >= 5 * 0.05


def test_a_kill_that_fails_is_no_fault_of_the_database():
    def kill(_count):
        raise ProcessLookupError

    with pytest.raises(ProcessLookupError):
        load(Sleeper(0), [b""] * 5, 2, kill)


@pytest.mark.parametrize(
    ("rates", "interval"),
    [
        ([3.0], (3.0, 3.0)),
        ([3.0, 1.0, 2.0], (1.0, 3.0)),
        ([*map(float, range(1, 12))], (2.0, 10.0)),
        ([*map(float, range(1, 7))], (1.0, 6.0)),
    ],
)
def test_an_interval_holds_the_median_with_95_percent(rates, interval):
    assert interval_of(rates) == interval


def test_repeats_end_when_the_median_is_known():
    assert not is_known([100.0] * 5, 0.05)
    assert is_known([100.0] * 6, 0.05)
    assert not is_known([90.0, 100.0, 100.0, 100.0, 100.0, 110.1], 0.1)


def test_two_runs_are_compared_and_figures_are_lines_of_csv(tmp_path, capsys):
    options = ["--rows", "1000", "--batch", "100", "--trucks", "20", "--folder", str(tmp_path)]
    files = [tmp_path / "first.json", tmp_path / "second.json"]
    for file in files:
        assert run(["bench", "sqlite", *options, "--output", str(file)]) == 0
    capsys.readouterr()
    assert run(["bench", "compare", *map(str, files)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"sqlite +load.rows_per_second .*few repeats", said)
    assert "load.latency.p99" in said
    lines = files[0].with_suffix(".csv").read_text().splitlines()
    assert lines[0] == "database,figure,value"
    assert "sqlite,kill.lost_rows,0" in lines
    assert run(["bench", "compare", str(files[0])]) == 1
    assert run(["bench", "compare", str(files[0]), str(tmp_path / "none.json")]) == 1
    assert run(["bench", "compare", str(files[0]), str(files[0].with_suffix(".csv"))]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_another_package_adds_a_database(tmp_path, monkeypatch):
    info = tmp_path / "others-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    points = "[fleetcast.bench]\nforgetful = tests.bench.forgetful:Forgetful\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    assert isinstance(driver("forgetful", tmp_path / "data", {}), Forgetful)
    with pytest.raises(OperatorError, match=r"there are .*lines, forgetful"):
        driver("oracle", tmp_path, {})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_figures_for_a_device_have_no_page_beside_it(tmp_path, monkeypatch):
    """`--output /dev/null` made the file /dev/null.html."""
    document = {"databases": {}, "workload": {}}
    monkeypatch.setattr("fleetcast.bench.report.measured", lambda *_: document)
    monkeypatch.setattr("fleetcast.bench.report.rows_of", lambda _: ([], []))
    device = tmp_path / "null"
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    assert run(["bench", "sqlite", "--output", str(device)]) == 0
    assert list(tmp_path.iterdir()) == [device]
    assert device.is_char_device()


def test_a_database_that_does_not_answer_is_status_1_and_no_name_of_an_exception(tmp_path, capsys):
    options = ["--rows", "1000", "--output", str(tmp_path / "bench.json")]
    with socket.socket() as taken:  # and not listened on
        taken.bind(("127.0.0.1", 0))
        database = f"postgresql:url=postgresql://127.0.0.1:{taken.getsockname()[1]}/none"
        assert run(["bench", database, *options, "--folder", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "connection" in out
    assert "Error" not in out + err


def test_a_page_holds_whatever_a_fault_says():
    document = {"databases": {"a": {"fault": "</script><script>alert(1)</script>"}}}
    assert page(document).count("</script>") == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("oracle", "oracle is no driver"),
        ("lines", "lines needs"),
        ("questdb", "questdb needs"),
        ("sqlite:x", "key=value"),
    ],
)
def test_a_database_that_is_none_is_one_line(given, said, capsys):
    assert run(["bench", given]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fleetcast: ")
    assert said in line


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 1_200, reason="few files")
def test_a_database_is_killed_by_a_program_with_many_files():
    """`select.select` took no descriptor above 1,023, so the process was killed and not awaited."""
    database = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with contextlib.ExitStack() as files, database:
        for _ in range(1_100):
            files.callback(os.close, os.dup(0))
        kill_below(database.pid)
        assert database.poll() == -signal.SIGKILL


def test_every_driver_is_there(tmp_path):
    options = {"lines": {"url": "http://127.0.0.1:1/write"}, "questdb": {"jar": "questdb.jar"}}
    for name in DRIVERS:
        assert driver(name, tmp_path / name, options.get(name, {})).about
    with pytest.raises(OperatorError):
        driver("oracle", tmp_path, {})


def test_the_help_names_every_driver(capsys):
    assert run(["bench", "--help"]) == 0
    listed = capsys.readouterr().out.partition("DATABASE is one of")[2].partition("Options")[0]
    assert set(DRIVERS) <= set(re.findall(r"\w+", listed))
