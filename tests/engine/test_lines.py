"""Records as lines are the data that they are as JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.engine import Plane
from fleetcast.errors import Refused

from .formats import assert_alike
from .lines import to_lines
from .model import SECOND_NS
from .strategies import BASE_NS, NOW_NS, batches, latest_queries, series_queries
from .test_properties import TENANT, to_body


@given(
    written=st.lists(batches, max_size=5),
    mixed=st.lists(st.booleans(), min_size=5, max_size=5),
    latest=st.lists(latest_queries, min_size=1, max_size=3),
    series=st.lists(series_queries(), min_size=1, max_size=3),
)
def test_every_read_is_byte_for_byte_that_of_json(written, mixed, latest, series) -> None:
    both = [
        (records, to_lines(records), is_json)
        for records, is_json in zip(written, mixed, strict=False)
    ]
    assert_alike("write_lines", both, latest, series)


texts = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=6)
names = texts.filter(bool)


@given(
    # Neither a comment nor blanks before a line can be escaped.
    measurement=names.filter(lambda name: name[0] not in "# \t\ufeff"),
    tags=st.dictionaries(names.filter(lambda key: not key.startswith("tenant")), texts, max_size=3),
    fields=st.dictionaries(
        names,
        st.one_of(
            st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=6)
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_any_text_can_be_written(measurement, tags, fields) -> None:
    record = {"measurement": measurement, "time_ns": BASE_NS, "tags": tags, "fields": fields}
    record["tags"]["entity_id"] = "a b,c=d\\"
    answers = []
    for write, body in (("write_json", to_body([record])), ("write_lines", to_lines([record] * 3))):
        plane = Plane.in_memory(TENANT)
        getattr(plane, write)(body, now_ns=NOW_NS)
        as_of = {"as_of_ns": NOW_NS, "freshness_ns": 604_800 * SECOND_NS}
        answers.append(json.loads(plane.latest_json(**as_of)))
    assert answers[0] == answers[1]
    assert answers[0]["entities"][0]["fields"] == fields


@pytest.mark.parametrize(
    ("precision", "unit_ns"), [("ns", 1), ("us", 1000), ("ms", 1_000_000), ("s", SECOND_NS)]
)
def test_times_are_in_the_unit_that_is_named(precision, unit_ns) -> None:
    now_ns = NOW_NS + 123_456_789
    plane = Plane.in_memory(TENANT)
    lines = f"link,entity_id=a x=1 {NOW_NS // unit_ns - 1}\nlink,entity_id=b x=1\n"
    assert plane.write_lines(lines.encode(), precision=precision, now_ns=now_ns).accepted_count == 2
    entities = json.loads(plane.latest_json(now_ns=now_ns))["entities"]
    text = {"ns": "123456789", "us": "123456", "ms": "123", "s": ""}[precision]
    assert entities[1]["observed_at"].partition(".")[2].strip("Z") == text  # down to a whole unit
    assert len(entities) == 2


def test_an_unknown_precision_is_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match='no precision "m"'):
        Plane.in_memory(TENANT).write_lines(b"", precision="m")


def test_a_fault_says_which_record_it_is_in() -> None:
    plane = Plane.in_memory(TENANT)
    with pytest.raises(Refused) as refused:
        plane.write_lines(b"# comment\nm x=1\n\nm x=18446744073709551616u\nm x")
    code, context = refused.value.args
    assert code == "schema_faults"
    assert [(fault["type"], fault["loc"]) for fault in context["detail"]] == [
        ("int_parsing_size", ["body", 1, "fields", "x"]),
        ("line_invalid", ["body", 2]),
    ]
    assert plane.stats().rows == 0


@pytest.mark.parametrize(
    ("limits", "body", "refusal"),
    [
        (
            {"batch_records_max": 1},
            b"m x=1\nm x=1",
            ("batch_too_large", {"max": 1, "received": 2}),
        ),
        ({"tags_max": 1}, b"m,a=1,b=1 x=1", ("invalid_input", {"field": "tags"})),
        ({"fields_max": 1}, b"m x=1,y=1", ("invalid_input", {"field": "fields"})),
        ({"tenant_fields_max": 1}, b"m x=1\nm y=1", ("invalid_input", {"field": "fields"})),
        ({"tenant_series_max": 1}, b"m x=1\nn x=1", ("invalid_input", {"field": "tags"})),
        ({}, b"m x=1\nm x=t", ("field_type_conflict", {"field": "x"})),
    ],
)
def test_bounds_are_those_of_json(limits, body, refusal) -> None:
    plane = Plane.in_memory(TENANT)
    with pytest.raises(Refused) as refused:
        plane.write_lines(body, **limits)
    assert refused.value.args == refusal
    assert plane.stats().rows == 0
