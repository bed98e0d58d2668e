"""Files that polars cannot read are told in our words."""

import gzip
from datetime import UTC, datetime
from functools import partial

import polars as pl
import pytest

from fleetcast.cli.demo.sample import sampled_fleet
from fleetcast.cli.main import run
from fleetcast.errors import OperatorError, reason
from fleetcast.forecast.training.sets import SETS
from fleetcast.transfer.foreign_files import read_by_polars

MISSING = "No such file or directory"


def put(path, content):
    path.parent.mkdir(exist_ok=True)
    if content == "other columns":
        pl.DataFrame({"other": [1]}).write_parquet(path)
    elif content is not None:
        path.write_bytes(content)


def told(work):
    with pytest.raises((OperatorError, OSError)) as caught:
        work()
    return reason(caught.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (pl.exceptions.ComputeError("parquet: File out of specification"), "f: is damaged"),
        (pl.exceptions.PanicException("called `Option::unwrap()`"), "f: is damaged"),
        (OSError("corrupt deflate stream"), "f: is damaged"),
        (OSError("Input/output error (os error 5)"), "f: Input/output error"),
        (FileNotFoundError("No such file or directory (os error 2): …a/b.csv"), f"f: {MISSING}"),
    ],
)
def test_a_fault_is_told_in_our_words(error, said):
    with pytest.raises(OperatorError) as caught, read_by_polars("f", "is damaged"):
        raise error
    assert str(caught.value) == said


def test_what_python_says_of_a_file_stays():
    with pytest.raises(PermissionError, match="Permission denied"), read_by_polars("f", "is none"):
        raise PermissionError(13, "Permission denied", "f")


@pytest.fixture
def imported(tmp_path, monkeypatch, capsys):
    """Imports a frame as Parquet, of which one byte may be another, and gives the answer."""
    monkeypatch.setenv("FLEETCAST_DATA", str(tmp_path / "data"))
    file = tmp_path / "f.parquet"
    assert run(["init"]) == run(["tenant", "create", "acme"]) == 0

    def imported(frame, wrong_at=None):
        frame.write_parquet(file)
        if wrong_at is not None:
            content = file.read_bytes()
            file.write_bytes(content[:wrong_at] + b"\xff" + content[wrong_at + 1 :])
        capsys.readouterr()
        status = run(["import", "--tenant", "acme", "--format", "parquet", str(file)])
        return status, *capsys.readouterr()

    return imported


def test_a_damaged_page_of_parquet_is_named_with_its_row(imported, tmp_path):
    frame = {"time": ["2026-01-01T00:00:00Z"], "measurement": ["link"], "entity_id": ["a"]}
    said = f"fleetcast: {tmp_path / 'f.parquet'}: is damaged: row 1 cannot be read\n"
    assert imported(pl.DataFrame(frame), wrong_at=22) == (1, "", said)  # in the first page


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        (["x", None], "Input should be an ISO 8601 datetime in a string"),
        ([1, 2], "Input should be an ISO 8601 datetime in a string"),
    ],
)
def test_a_row_without_a_time_is_rejected_where_a_field_has_two_columns(imported, times, reason):
    table = {
        "t|dateTime:RFC3339": times,
        "m|measurement": ["link"] * 2,
        "id|tag": ["a"] * 2,
        "up|double": [1.0, None],
        "up|boolean": [None, True],
    }
    status, out, err = imported(pl.DataFrame(table))
    assert (status, err) == (1, "")
    assert out.count(f"time: {reason}") == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "{file}: No such file or directory"),
        (b"PAR1", "{file}: is damaged"),
        ("other columns", "{folder}: holds a sample of another form"),
    ],
)
def test_a_sample_that_cannot_be_read_is_told_with_its_file(tmp_path, content, said):
    read = partial(next, sampled_fleet(tmp_path, datetime.now(UTC)))
    file = tmp_path / "pools/hosting_pools_offered_bytes_15min.parquet"
    put(file, content)
    put(tmp_path / "links/microwave_rsl_decidbm_1min.parquet", "other columns")
    put(tmp_path / "links/microwave_tsl_decidbm_1min.parquet", "other columns")
    put(tmp_path / "links/microwave_links.csv", b"link_id\na\n")
    assert told(read) == said.format(file=file, folder=tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "{file}: No such file or directory"),
        (gzip.compress(b"timestamp,esno\n" * 99, mtime=0)[:20], "{file}: is damaged"),
        (b"a,b\n1,2\n", "{folder}: the files of the set satellite are of another form"),
    ],
)
def test_a_set_that_cannot_be_read_is_told_with_its_file(tmp_path, content, said):
    one = SETS[0]
    file = tmp_path / one.files[0]
    put(file, content)
    assert told(partial(one.rows, tmp_path)) == said.format(file=file, folder=tmp_path)
