"""Footers of Parquet files are written as they were read, whatever polars puts in there later."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.transfer import thrift
from fleetcast.transfer.thrift import Field, decoded, encoded

integers = st.integers(-(2**63), 2**63 - 1)
scalars = {
    thrift.SHORT: st.integers(-(2**15), 2**15 - 1),
    thrift.INT: st.integers(-(2**31), 2**31 - 1),
    thrift.LONG: integers,
    thrift.BYTE: st.binary(min_size=1, max_size=1),
    thrift.DOUBLE: st.binary(min_size=8, max_size=8),
    thrift.BINARY: st.binary(max_size=200),
}


def lists(kind, items):
    return st.tuples(st.just(kind), st.lists(items, max_size=20))


def fields(values):
    numbered = st.dictionaries(st.integers(1, 1_000), values, max_size=8)
    return numbered.map(lambda found: dict(sorted(found.items())))


leaves = st.one_of(
    [st.builds(Field, st.just(kind), values) for kind, values in scalars.items()]
    + [
        st.builds(Field, st.just(thrift.LIST), lists(kind, values))
        for kind, values in scalars.items()
    ]
    + [st.just(Field(thrift.TRUE, value=True)), st.just(Field(thrift.FALSE, value=False))]
)
structs = st.recursive(
    fields(leaves),
    lambda inner: fields(
        leaves
        | st.builds(Field, st.just(thrift.STRUCT), inner)
        | st.builds(Field, st.just(thrift.LIST), lists(thrift.STRUCT, inner))
    ),
    max_leaves=6,
)


@given(structs)
def test_a_structure_comes_back(struct):
    assert decoded(encoded(struct)) == struct


def test_the_bytes_are_those_of_the_compact_protocol():
    """Field 1 = -1 (i32), field 17 = [1, 2] (i64): of the protocol's own description."""
    struct = {1: Field(thrift.INT, -1), 17: Field(thrift.LIST, (thrift.LONG, [1, 2]))}
    assert encoded(struct) == bytes([0x15, 0x01, 0x09, 0x22, 0x26, 0x02, 0x04, 0x00])


def test_a_type_that_is_not_known_is_said():
    with pytest.raises(ValueError, match="type 11"):
        decoded(bytes([0x1B, 0x00]))
