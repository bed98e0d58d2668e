"""Texts of files: cells of CSV, records that go on in other lines, and what is wrong with them."""

import csv
import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.config.sections import Limits
from fleetcast.engine import Plane
from fleetcast.transfer.csv_reader import CsvReader
from fleetcast.transfer.importer import Importer
from fleetcast.transfer.mapping import ColumnOptions
from fleetcast.transfer.pieces import LINE_BYTES_MAX, PIECE_BYTES
from fleetcast.transfer.readers import json_reader, protocol_reader
from fleetcast.transfer.report import Report

OPTIONS = ColumnOptions(time_column="at", time_unit="s", measurement="link")
START = 1_767_225_600


def load(plane, path, text, make):
    """The report on a text, and line, reason and text of each record that it rejects."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    report, rejected = Report(), {}

    def reject(line, reason, record):
        rejected[line] = reason, record

    importer = Importer(report, Limits(), reject, lambda: None)
    reader = make(str(path), lambda _: None)
    for span in reader.spans():
        if span.problem is not None:
            reject(span.first, span.problem, "")
            continue
        for batch in reader.batch(span).pieces():
            importer.write(plane, batch)
    return report, rejected


def as_csv(name, advance, options=OPTIONS):
    return CsvReader(name, advance, options, lambda _: {})


def as_lines(name, advance):
    return protocol_reader(name, advance, "s")


def notes(plane):
    frame = pl.DataFrame(plane.scan(0, 2**62)).sort("time")
    return frame["note"].to_list()


# A carriage return alone ends a line for some readers and not for others.
cells = st.text(st.sampled_from('ab,"\né \\|#'), max_size=5)


@given(
    rows=st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=20),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_cells_are_those_of_other_readers(tmp_path_factory, rows, quoting, end):
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=quoting, lineterminator=end)
    writer.writerow(["at", "entity_id", "a", "b", "c"])
    for number, row in enumerate(rows):
        writer.writerow([START + number, "l-1", *row])
    text = file.getvalue()
    plane = Plane.in_memory("acme")
    path = tmp_path_factory.mktemp("texts") / "f.csv"
    kinds = dict.fromkeys("abc", "text")
    _, rejected = load(plane, path, text, lambda *of: CsvReader(*of, OPTIONS, lambda _: kinds))
    assert {reason for reason, _ in rejected.values()} <= {"fields: missing"}
    stored = pl.DataFrame(plane.scan(0, 2**62), schema_overrides=None)
    found = {
        row["time"].timestamp() - START: [row.get(name) for name in "abc"]
        for row in stored.iter_rows(named=True)
    }
    theirs = pl.read_csv(text.encode(), schema_overrides=dict.fromkeys("abc", pl.String))
    read = list(csv.reader(io.StringIO(text, newline=""), strict=True))[1:]
    for number, (cells_read, row) in enumerate(zip(read, theirs.iter_rows(), strict=True)):
        ours = found.get(number, [None] * 3)
        assert ours == list(row[2:])
        assert [cell or "" for cell in ours] == cells_read[2:]


@pytest.mark.parametrize("form", [as_csv, as_lines])
def test_texts_that_lie_in_two_pieces_are_whole(tmp_path, form):
    note = "".join(f"line {number}\n" for number in range(10_000))
    count = 3 * PIECE_BYTES // len(note)
    if form is as_csv:
        text = "at,entity_id,note\n" + "".join(
            f'{START + number},a,"{note}{number}"\n' for number in range(count)
        )
    else:
        text = "".join(
            f'link,entity_id=a note="{note}{number}" {START + number}\n' for number in range(count)
        )
    plane = Plane.in_memory("acme")
    report, rejected = load(plane, tmp_path / "f", text, form)
    assert (report.accepted, rejected) == (count, {})
    assert notes(plane) == [f"{note}{number}" for number in range(count)]


@pytest.mark.parametrize("form", [as_csv, as_lines])
def test_an_open_quote_costs_its_line_however_much_follows(tmp_path, form):
    if form is as_csv:
        head, bad = "at,entity_id,note\n", f'{START},a,"open\n'
        row = f"{START},a,{'x' * 1000}\n"
    else:
        head, bad = "", f'link,entity_id=a note="open {START}\n'
        row = f"link,entity_id=a,pad={'x' * 1000} n=1 {START}\n"
    rows = [row] * (2 * LINE_BYTES_MAX // len(row))
    plane = Plane.in_memory("acme")
    report, rejected = load(plane, tmp_path / "f", head + bad + "".join(rows), form)
    assert list(rejected) == [1 + bool(head)]
    assert report.accepted == len(rows)


def test_a_text_in_another_encoding_costs_the_rows_that_have_it(tmp_path):
    rows = [f"{START},a,{note}" for note in ("plain", "é", '"é\nè"', "plain")]
    text = "\n".join(["at,entity_id,note", *rows]).encode("latin-1")
    report, rejected = load(Plane.in_memory("acme"), tmp_path / "f", text, as_csv)
    assert report.accepted == 2
    assert {line: reason for line, (reason, _) in rejected.items()} == dict.fromkeys(
        (3, 4), "is not UTF-8"
    )


def test_rows_are_rejected_as_the_file_has_them(tmp_path):
    rows = {
        2: (f"{START},a,1,", None),
        3: (f"{START},a,1", "has 3 cells, the header has 4"),
        4: (f"{START},a,x,", "has no number in n: 'x'"),
        5: (f"{START}.5,a,1,", f"has no whole number in at: '{START}.5'"),
        6: (f"{START},a,1e999,", "has a number out of range in n"),
        7: (f'{START},a,1,"x"y', "has quotes that are not closed, or closed within a cell"),
        8: (f"{START},a,nan,", "fields: missing"),
        9: ("9,a,1,", "time: before 2000-01-01T00:00:00Z"),
        10: (f'{START},a,1,"two\nlines",', "has 5 cells, the header has 4"),
        12: (f"{START},a,7,TRUE", None),
        13: (f"{START},a,7,yes", "has no true or false in up: 'yes'"),
    }
    text = "\n".join(["at,entity_id,n,up", *(row for row, _ in rows.values())])
    report, rejected = load(Plane.in_memory("acme"), tmp_path / "f", text, as_csv)
    assert report.accepted == 2
    assert rejected == {
        line: (reason, row) for line, (row, reason) in rows.items() if reason is not None
    }


def test_lines_of_json_that_are_longer_than_a_piece_are_read(tmp_path):
    note = "x" * (PIECE_BYTES + 1_000)
    line = (
        f'{{"measurement":"link","time":"2026-01-01","tags":{{}},"fields":{{"note":"{note}"}}}}\n'
    )
    plane = Plane.in_memory("acme")
    report, rejected = load(plane, tmp_path / "f", line * 3 + "{\n" + line, json_reader)
    assert (report.accepted, list(rejected)) == (4, [4])
    assert notes(plane) == [note] * 4
