"""Exported and imported again, the rows of a plane are those that a scan of the first one gives."""

import json
import struct
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given

from fleetcast.config.sections import Limits
from fleetcast.engine import Plane
from fleetcast.errors import Refused
from fleetcast.transfer import exporting, table_export
from fleetcast.transfer.csv_reader import CsvReader
from fleetcast.transfer.importer import Importer
from fleetcast.transfer.mapping import ColumnOptions
from fleetcast.transfer.parquet_reader import ParquetReader
from fleetcast.transfer.readers import json_reader
from fleetcast.transfer.report import Rejection, Report
from tests.engine import strategies
from tests.engine.strategies import NOW_NS
from tests.engine.test_properties import to_body

ALL = (0, 2**62)
FORMS = ("jsonl", "csv", "parquet")
ENDINGS = ("", ".gz", ".zst")
STRINGS = [
    "",
    " ",
    "1.5",
    "true",
    "nan",
    'a,"b"\n\r',
    "\r",
    "\x00",
    "é\U0001f600",
    "|",
    "#",
    "\\",
    "a:text",
]


def advance(size):
    assert size >= 0


def export(plane, form, path):
    stream = plane.scan(*ALL)
    with exporting.written(str(path)) as file:
        if form == "parquet":
            return table_export.export_parquet(stream, file, advance)
        if form == "jsonl":
            return exporting.export_jsonl(stream, file, advance)
        return table_export.export_csv(stream, tag_names(plane), file, advance)


def tag_names(plane):
    found = plane.describe()["measurements"].values()
    return sorted({"entity_id", *(tag for contents in found for tag in contents["tags"])})


def load(plane, form, path):
    report = Report()

    def reject(line, reason, text):
        report.reject(Rejection(str(path), line, reason, text))

    importer = Importer(report, Limits(), reject, lambda: None)
    reader = {
        "jsonl": lambda: json_reader(str(path), advance),
        "csv": lambda: CsvReader(str(path), advance, ColumnOptions(), lambda _: {}),
        "parquet": lambda: ParquetReader(str(path), advance, ColumnOptions()),
    }[form]()
    for span in reader.spans():
        for batch in reader.batch(span).pieces():
            importer.write(plane, batch)
    return report


def rows(plane):
    """All rows in order, numbers by their bits."""
    frame = pl.DataFrame(plane.scan(*ALL))
    columns = [[_bits(value) for value in frame[name].to_list()] for name in frame.columns]
    times = frame["time"].cast(pl.Int64).to_list()
    tags = [tuple(pairs.items()) for pairs in frame["tags"].to_list()]
    found = list(zip(times, *columns[1:2], tags, *columns[3:], strict=True))
    return frame.columns, sorted(found, key=order)


def order(row):
    """As rows are scanned; those without an entity lie by series, in no order that is promised."""
    time, measurement, tags, *_ = row
    entity = dict(tags).get("entity_id", "")
    return measurement, entity, () if entity else tags, time


def _bits(value):
    return struct.pack("<d", value) if isinstance(value, float) else value


def there_and_back(plane, form, ending=""):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{ending}"
        count = export(plane, form, path)
        again = Plane.in_memory("acme")
        report = load(again, form, path)
    assert (report.accepted, report.rejected) == (count, 0), report
    assert count == plane.stats().rows
    columns, expected = rows(plane)
    found_columns, found = rows(again)
    assert found_columns == columns
    return found, expected


@pytest.mark.parametrize("form", FORMS)
@given(strategies.batches)
def test_whatever_was_written_comes_back(form, batch):
    plane = Plane.in_memory("acme")
    try:
        plane.write_json(to_body(batch), now_ns=NOW_NS)
    except Refused:
        return
    found, expected = there_and_back(plane, form)
    assert found == expected


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("form", FORMS)
def test_every_value_and_every_name_comes_back(form, ending):
    plane = Plane.in_memory("acme")
    floats = [0.0, -0.0, 5e-324, 2.2250738585072011e-308, 1.7976931348623157e308, 0.1, 1e22, 1e16]
    records = [
        {
            "measurement": measurement,
            "time": f"2026-01-01T00:00:00.{number:09}Z",
            "tags": {}
            if number % 3 == 0
            else {"entity_id": text, text: text, "é": ""}
            if text
            else {"entity_id": "a"},
            "fields": {"x": value, text or "y": text, "up": number % 2 == 0},
        }
        for number, (measurement, text, value) in enumerate(
            (measurement, text, value)
            for measurement in ("link", "a,b|tag")
            for text in STRINGS
            for value in (floats if measurement == "link" else ["1", "x", ""])
        )
    ]
    plane.write_json(json.dumps(records).encode(), batch_records_max=10_000)
    found, expected = there_and_back(plane, form, ending)
    assert found == expected


@pytest.mark.parametrize("form", FORMS)
def test_two_thousand_fields_and_rows_that_repeat_come_back(form):
    plane = Plane.in_memory("acme")
    wide = {f"f{number:04}": number / 7 for number in range(2000)}
    record = {
        "measurement": "link",
        "time": "2026-01-01T00:00:00Z",
        "tags": {"entity_id": "a"},
        "fields": {"f0001": 1.0},
    }
    records = [record | {"fields": wide}, record, record, record | {"fields": {"f0001": 2.0}}]
    plane.write_json(json.dumps(records).encode())
    found, expected = there_and_back(plane, form)
    assert found == expected
    assert len(found) == 4


def test_parquet_of_many_row_groups_is_read_whole_and_by_its_statistics(tmp_path):
    """Rows of each group are found by the statistics that its footer moved with it."""
    plane = Plane.in_memory("acme")
    first_ns, count = 1_767_225_600_000_000_000, 150_000
    frame = pl.DataFrame({"t": pl.int_range(count, eager=True) + first_ns}).with_columns(
        id=pl.format("e{}", pl.col("t") % 7),
        x=pl.when(pl.col("t") % 3 == 0).then(pl.col("t").cast(pl.Float64)),
        up=pl.col("t") % 2 == 0,
        note=pl.format("note {}", pl.col("t") % 1_000),
    )
    mapping = {"time": "t", "time_unit": "ns", "measurement": "link", "entity": "id"}
    plane.write_arrow(frame, mapping=mapping)
    path = tmp_path / "file.parquet"
    assert export(plane, "parquet", path) == count
    scanned = pl.DataFrame(plane.scan(*ALL))
    stored = pl.scan_parquet(path)
    assert stored.collect().equals(scanned)
    for number in (0, 40_000, count - 1):
        time = pl.col("time").dt.timestamp("ns") == first_ns + number
        assert stored.filter(time).collect().equals(scanned.filter(time))
        note = pl.col("note") == f"note {number % 1_000}"
        assert stored.filter(note, pl.col("x") > 0).collect().height == (
            scanned.filter(note, pl.col("x") > 0).height
        )


def test_an_export_of_no_rows_has_all_columns_that_it_could_have(tmp_path):
    plane = Plane.in_memory("acme")
    for form in FORMS:
        assert export(plane, form, tmp_path / form) == 0
    assert (tmp_path / "jsonl").read_bytes() == b""
    header = "time|dateTime:RFC3339,measurement|measurement,entity_id|tag\n"
    assert (tmp_path / "csv").read_text() == header
    empty = pl.read_parquet(tmp_path / "parquet")
    assert (empty.columns, empty.height) == (["time", "measurement", "tags"], 0)
