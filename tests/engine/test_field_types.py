"""E3, E6: one type per field; of several conflicts the first in array order, then key order."""

from __future__ import annotations

import json
import multiprocessing
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcast.engine import Engine, Plane
from fleetcast.errors import Refused
from fleetcast.protobuf import delimited, integer

from .model import SECOND_NS, YEAR_2000_NS, format_time
from .strategies import BASE_NS, NOW_NS

if TYPE_CHECKING:
    from pathlib import Path

TENANT = "acme"
DOUBLE_1 = b"\x09"  # the key of a double, field 1
MASTER_KEY = bytes(range(32))

values = st.one_of(st.just(1.5), st.just("x"), st.booleans())
fields = st.lists(st.tuples(st.sampled_from("abcd"), values), max_size=4, unique_by=lambda f: f[0])
records = st.tuples(
    st.sampled_from(["link", "pool"]),
    st.sampled_from([BASE_NS, BASE_NS, BASE_NS, YEAR_2000_NS - 1]),
    fields.map(tuple),
)


def to_json(batch) -> bytes:
    return json.dumps(
        [
            {
                "measurement": measurement,
                "time": format_time(time_ns),
                "tags": {"entity_id": "e"},
                "fields": dict(fields),
            }
            for measurement, time_ns, fields in batch
        ]
    ).encode()


def to_protobuf(batch) -> bytes:
    """Map entries in their order, which the generated classes do not keep."""

    def value(of) -> bytes:
        if isinstance(of, bool):
            return integer(2, of)
        return delimited(3, of) if isinstance(of, str) else DOUBLE_1 + struct.pack("<d", of)

    def message(measurement, time_ns, fields) -> bytes:
        seconds, nanos = divmod(time_ns, SECOND_NS)
        return b"".join(
            (
                delimited(1, measurement),
                delimited(2, integer(1, seconds) + integer(2, nanos)),
                delimited(3, delimited(1, "entity_id") + delimited(2, "e")),
                *(
                    delimited(4, delimited(1, name) + delimited(2, value(of)))
                    for name, of in fields
                ),
            )
        )

    return b"".join(delimited(1, message(*record)) for record in batch)


FORMATS = {"write_json": to_json, "write_protobuf": to_protobuf}


def named(plane: Plane, write: str, batch) -> str | None:
    """The field whose type conflicts, `None` where the batch was stored."""
    try:
        getattr(plane, write)(FORMATS[write](batch), now_ns=NOW_NS)
    except Refused as refused:
        code, context = refused.args
        assert code == "field_type_conflict"
        return context["field"]
    return None


def modelled(types: dict, batch) -> str | None:
    """The same of a plain model, which notes the types of a batch that it takes."""
    known = dict(types)
    for measurement, time_ns, fields in batch:
        if time_ns < YEAR_2000_NS:
            continue
        for name, value in fields:
            if known.setdefault((measurement, name), type(value)) is not type(value):
                return name
    types.update(known)
    return None


@pytest.mark.parametrize("write", FORMATS)
@settings(max_examples=150, deadline=None)
@given(batches=st.lists(st.lists(records, max_size=8), min_size=2, max_size=5))
def test_e6_the_first_conflict_is_named_as_modelled(write, batches) -> None:
    plane, types = Plane.in_memory(TENANT), {}
    for batch in batches:
        assert named(plane, write, batch) == modelled(types, batch)


def write_elsewhere(directory: Path, batch) -> None:
    engine = Engine(directory, MASTER_KEY)
    assert named(engine.plane("a", TENANT), "write_json", batch) is None
    engine.close()


@pytest.mark.parametrize("write", FORMATS)
def test_e6_the_field_named_does_not_depend_on_the_process_that_is_asked(tmp_path, write) -> None:
    """This one has not yet heard of the type that another process gave `a`."""
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("a")
    plane = engine.plane("a", TENANT)
    other = [("link", BASE_NS, (("a", 1.5),))]
    writer = multiprocessing.get_context("spawn").Process(
        target=write_elsewhere, args=(tmp_path, other)
    )
    writer.start()
    writer.join()
    assert writer.exitcode == 0
    batch = [
        ("link", BASE_NS, (("a", "x"), ("b", 1.5))),
        ("link", BASE_NS, (("b", "x"),)),
    ]
    assert named(plane, write, batch) == "a"
    engine.close()
