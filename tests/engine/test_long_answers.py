"""Answers of `GET /topology` beyond a mebibyte: made in pieces, as of one instant."""

from __future__ import annotations

import json

import pytest

from fleetcast.engine import LongAnswer, Plane, Service, format_time

from .model import SECOND_NS
from .strategies import BASE_NS, NOW_NS
from .test_newest import WEEK_NS, record, write

MEBIBYTE = 1_048_576
ENTITIES = 3_000


def fleet(plane: Plane) -> None:
    """Entities of some shapes: texts, rows of one instant, wide ones with long names."""
    for first in range(0, ENTITIES, 1_000):
        names = [f"link-{number:05}" for number in range(first, first + 1_000)]
        write(plane, *(record(name, BASE_NS, {"snr_db": 1.5, "note": "x" * 400}) for name in names))
    rows = [record(f"link-{number:05}", BASE_NS, {"up": True}, site="s") for number in range(500)]
    write(plane, *rows)
    wide = {f"{number:04}-{'n' * 200}": number / 8 for number in range(2_000)}
    for entity in ("wide-1", "wide-2", "wide-3"):
        write(plane, record(entity, BASE_NS, wide))
        write(plane, record(entity, BASE_NS, {f"{name}-b": value for name, value in wide.items()}))


@pytest.fixture
def plane():
    plane = Plane.in_memory("acme")
    fleet(plane)
    yield plane
    plane.close()


def answer(plane: Plane, as_of_ns: int = NOW_NS) -> LongAnswer:
    begun = begin(plane, as_of_ns)
    assert isinstance(begun, LongAnswer)
    return begun


def begin(plane: Plane, as_of_ns: int) -> list[bytes] | LongAnswer:
    query = f"as_of_utc={format_time(as_of_ns)}&freshness_seconds={WEEK_NS // SECOND_NS}"
    return Service.latest(plane, query)


@pytest.mark.parametrize("as_of_ns", [NOW_NS, BASE_NS + 1], ids=["newest", "as it was"])
def test_o3_a_long_answer_is_of_one_instant_whatever_happens_meanwhile(plane, as_of_ns):
    if as_of_ns < NOW_NS:  # something newer hides the past
        write(plane, record("link-00000", BASE_NS + 5, {"snr_db": 0.0}))
    whole = plane.latest_json(freshness_ns=WEEK_NS, as_of_ns=as_of_ns)
    pieces = answer(plane, as_of_ns)
    taken = [bytes(next(pieces))]
    write(plane, record("link-02999", BASE_NS + 9, {"snr_db": 9.0, "another": 1.0}))
    write(plane, record("zzz", BASE_NS + 9, {"snr_db": 9.0}))
    taken.append(bytes(next(pieces)))
    plane.compact(whole=True, now_ns=NOW_NS)
    plane.delete(start_ns=0, end_ns=NOW_NS + 1)
    assert json.loads(plane.latest_json(freshness_ns=WEEK_NS, now_ns=NOW_NS))["entities"] == []
    taken += map(bytes, pieces)
    assert b"".join(taken) == whole
    assert len(json.loads(whole)["entities"]) == ENTITIES + 3


def test_o3_n3_no_piece_is_much_larger_than_another_however_wide_an_entity_is(plane):
    sizes = [len(piece) for piece in answer(plane)]
    assert sum(sizes) > 4 * MEBIBYTE
    assert max(sizes) < 1.1 * MEBIBYTE
    assert min(sizes[:-1]) >= MEBIBYTE


def test_o3_it_is_told_once_when_it_is_over_or_given_up(plane):
    told = []
    whole = answer(plane)
    whole.when_over(told.append)
    size = sum(map(len, whole))
    assert told == [size]
    given_up = answer(plane)
    given_up.when_over(told.append)
    first = len(next(given_up))
    del given_up
    assert told == [size, first]


def test_o3_an_answer_up_to_a_mebibyte_is_whole():
    plane = Plane.in_memory("acme")
    empty = len(plane.latest_json(as_of_ns=NOW_NS, freshness_ns=WEEK_NS))
    write(plane, record("a", BASE_NS, {"note": ""}))
    one = len(plane.latest_json(as_of_ns=NOW_NS, freshness_ns=WEEK_NS))
    assert one > empty
    for second, size in enumerate((MEBIBYTE - one, MEBIBYTE - one + 1), 1):
        write(plane, record("a", BASE_NS + second * SECOND_NS, {"note": "x" * size}))
        got = begin(plane, NOW_NS)
        assert isinstance(got, list) == (size == MEBIBYTE - one)
        assert sum(map(len, got)) == one + size
    plane.close()
