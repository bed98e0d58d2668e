"""A record means the same however its tags are ordered, in a series that is new or known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.engine import Plane, format_time
from tests.adapters.messages import field
from tests.grpc.messages import record

from .lines import to_lines
from .model import SECOND_NS
from .strategies import BASE_NS, NOW_NS
from .test_properties import TENANT

AS_OF = {"as_of_ns": NOW_NS, "freshness_ns": 604_800 * SECOND_NS}


def to_json(records):
    texts = [
        {**{key: value for key, value in each.items() if key != "time_ns"},
         "time": format_time(each["time_ns"])}
        for each in records
    ]  # fmt: skip
    return json.dumps(texts).encode()


def to_message(records):
    """As generated classes write, but for the order of the tags, which is that of the record."""

    def of(each):
        first = record(each["time_ns"], None, each["measurement"], {}, each["fields"])
        tags = [record(None, None, "", {key: value}, {}) for key, value in each["tags"].items()]
        return b"".join(part.SerializeToString() for part in (first, *tags))

    return b"".join(field(1, of(each)) for each in records)


FORMATS = {"write_json": to_json, "write_lines": to_lines, "write_protobuf": to_message}
TAGS = {"entity_id": st.sampled_from("ab"), "site": st.just("x"), "z": st.sampled_from("01")}
RECORDS = st.lists(
    st.tuples(
        st.tuples(*TAGS.values()).map(lambda values: list(zip(TAGS, values, strict=True))),
        st.permutations(range(len(TAGS))),
        st.integers(0, 2),
        st.dictionaries(st.sampled_from(["snr_db", "up"]), st.integers(0, 9), min_size=1),
    ),
    max_size=10,
)


def records_of(drawn, *, ordered=False, later_s=0):
    return [
        {
            "measurement": "link",
            "time_ns": BASE_NS + (age + later_s) * SECOND_NS,
            "tags": dict(tags if ordered else [tags[at] for at in order]),
            "fields": fields,
        }
        for tags, order, age, fields in drawn
    ]


def reads(plane):
    """Answers of all reads, and rows by series and time in the order in which they were written."""
    rows = []
    for batch in plane.scan(BASE_NS, NOW_NS):
        rows += map(json.loads, batch.json_lines().splitlines())
    rows.sort(key=lambda row: (sorted(row["tags"].items()), row["time"]))
    window = {"start_ns": BASE_NS, "end_ns": BASE_NS + 60 * SECOND_NS, "measurement": "link"}
    series = plane.series_json(entity_ids=["a", "b"], now_ns=NOW_NS, **window)
    return json.loads(plane.latest_json(**AS_OF)), json.loads(series), rows


@pytest.mark.parametrize("write", FORMATS)
@given(drawn=RECORDS)
def test_f4_tags_in_any_order_are_one_series_new_or_known(write, drawn):
    encode = FORMATS[write]
    ordered, new, known = (Plane.in_memory(TENANT) for _ in range(3))
    getattr(ordered, write)(encode(records_of(drawn, ordered=True)), now_ns=NOW_NS)
    getattr(new, write)(encode(records_of(drawn)), now_ns=NOW_NS)
    getattr(known, write)(encode(records_of(drawn, ordered=True, later_s=-3600)), now_ns=NOW_NS)
    getattr(known, write)(encode(records_of(drawn)), now_ns=NOW_NS)
    assert reads(new) == reads(ordered) == reads(known)
    assert new.stats().series == ordered.stats().series
