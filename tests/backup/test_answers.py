"""The hash over all answers can be computed by anybody out of an export, and tells stores apart."""

from __future__ import annotations

import hashlib
import json
import struct
from datetime import UTC, datetime

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.engine import Plane
from tests.engine.strategies import BASE_NS, NOW_NS, batches
from tests.engine.test_properties import TENANT
from tests.engine.test_properties import write as write_records
from tests.engine.test_scan import EVER, rows_of

from .plane import write

WORD = 2**64


def mixed(number):
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % WORD
    number = (number ^ number >> 27) * 0x94D049BB133111EB % WORD
    return number ^ number >> 31


def key(content):
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "little")


def text(value):
    return struct.pack("<I", len(value.encode())) + value.encode()


def value_bits(value):
    """The type of a value and its number, as docs/format.md has them."""
    if isinstance(value, bool):
        return b"\1", int(value)
    if isinstance(value, str):
        return b"\2", key(value.encode())
    return b"\0", int.from_bytes(struct.pack("<d", value), "little")


def hash_of(rows):
    """The hash of rows with `measurement`, `time_ns`, `tags` and `fields`."""
    total = 0
    for row in rows:
        tags = sorted(row["tags"].items(), key=lambda tag: tag[0].encode())
        name = text(row["measurement"]) + struct.pack("<I", len(tags))
        name += b"".join(text(tag) + text(value) for tag, value in tags)
        hash_of_row = mixed((key(name) + mixed(row["time_ns"] % WORD)) % WORD)
        for field, value in row["fields"].items():
            code, bits = value_bits(value)
            total += mixed(hash_of_row ^ mixed((key(code + field.encode()) + bits) % WORD))
    return total % WORD


def nanoseconds(time):
    """The instant of a time as exports give it."""
    seconds, _, fraction = time.removesuffix("Z").partition(".")
    whole = int(datetime.fromisoformat(seconds).replace(tzinfo=UTC).timestamp())
    return whole * 10**9 + int(fraction.ljust(9, "0"))


def test_it_is_computed_out_of_an_export(data, call, tmp_path):
    call("tenant", "create", "acme")
    write(data, "acme", range(5))
    call("compact")
    write(data, "acme", range(3, 8))
    file = tmp_path / "rows.jsonl"
    span = ("--start", "2000-01-01T00:00:00Z", "--end", "2100-01-01T00:00:00Z")
    call("export", "--tenant", "acme", "--format", "jsonl", *span, file)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    wanted = hash_of({**row, "time_ns": nanoseconds(row["time"])} for row in rows)
    (verified,) = call("verify")["tenants"]
    assert (verified["answers"], len(rows)) == (f"{wanted:016x}", 500)


@given(st.lists(batches, min_size=1, max_size=4), st.data())
def test_it_is_that_of_the_rows_however_they_are_compacted(written, data):
    planes = [Plane.in_memory(TENANT) for _ in range(2)]
    for records in written:
        for plane in planes:
            write_records(plane, records)
            if data.draw(st.booleans()):
                plane.compact(whole=data.draw(st.booleans()), now_ns=NOW_NS)
    rows = rows_of(pl.DataFrame(planes[0].scan(*EVER, now_ns=NOW_NS)))
    assert {plane.answers_hash() for plane in planes} == {hash_of(rows)}


def test_any_other_row_gives_another():
    def of(**changes):
        row = {"measurement": "link", "time_ns": BASE_NS, "tags": {"a": "b"}, "fields": {"c": 0.0}}
        plane = Plane.in_memory(TENANT)
        write_records(plane, [row | changes])
        return plane.answers_hash()

    others = [
        {"measurement": "weather"},
        {"time_ns": BASE_NS + 1_000_000},
        {"tags": {"a": "c"}},
        {"tags": {"ab": ""}},
        {"tags": {}},
        {"fields": {"c": -0.0}},
        {"fields": {"c": False}},
        {"fields": {"c": ""}},
        {"fields": {"d": 0.0}},
        {"fields": {"c": 0.0, "d": 0.0}},
    ]
    hashes = [of(), *(of(**changes) for changes in others)]
    assert len(set(hashes)) == len(hashes)
    assert of() == hashes[0]


def test_a_store_of_more_fields_than_a_scan_may_have_has_one_too():
    rows = [
        {
            "measurement": "link",
            "time_ns": BASE_NS + number * 1_000_000,
            "tags": {},
            "fields": {f"field_{number}_{at}": at for at in range(1_500)},
        }
        for number in range(3)
    ]
    plane = Plane.in_memory(TENANT)
    write_records(plane, rows)
    assert plane.answers_hash() == hash_of(rows)


def test_it_is_the_same_after_a_restore(data, call, saved, folder, tmp_path):
    wanted = [tenant["answers"] for tenant in call("verify")["tenants"]]
    assert wanted[1] == f"{0:016x}" != wanted[0]
    found = call("verify", "--backup", folder)["tenants"]
    assert [tenant["answers"] for tenant in found] == wanted
    call("compact")
    assert [tenant["answers"] for tenant in call("verify")["tenants"]] == wanted
    key_file = data / "master.key"
    restored = call("restore", folder, "--data", tmp_path / "new", "--master-key", key_file)
    assert [tenant["answers"] for tenant in restored["tenants"]] == wanted
    write(data, "acme", [9])
    assert call("verify")["tenants"][0]["answers"] != wanted[0]
    assert saved.number == 1
