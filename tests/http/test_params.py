"""Query parameters and their faults."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.errors import Refused
from fleetcast.http.resources.params import Query


def faults(query):
    with pytest.raises(Refused) as caught:
        query.finish()
    code, context = caught.value.args
    assert code == "schema_faults"
    return [(fault["type"], fault["loc"]) for fault in context["detail"]]


def test_plus_is_a_space_and_empty_pairs_are_nothing():
    query = Query("&&a=x+y%2Bz&&b=&c&a+b=1")
    assert (query.text("a"), query.text("b"), query.text("c")) == ("x y+z", "", "")
    assert query.text("d") is None
    assert query.text("a b") == "1"
    query.finish()


def test_a_single_value_may_not_repeat():
    query = Query("interval=1m&interval=1m")
    assert (query.text("interval"), query.given("interval")) == (None, ["1m", "1m"])
    assert faults(query) == [("multiple_values", ["query", "interval"])]


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("-7", -7), ("%2B5", 5), ("007", 7)])
def test_whole_numbers(text, number):
    query = Query(f"n={text}")
    assert (query.whole("n"), query.whole("m")) == (number, None)
    query.finish()


@pytest.mark.parametrize("text", ["", "1.0", "1e3", "1_000", "+5", "%D9%A3", "%FF", "9" * 4_001])
def test_what_is_no_whole_number_is_listed_with_all_faults(text):
    query = Query(f"n={text}&m=x&m=y")
    assert (query.whole("n"), query.text("m")) == (None, None)
    assert faults(query) == [
        ("int_parsing", ["query", "n"]),
        ("multiple_values", ["query", "m"]),
    ]


@pytest.mark.parametrize("text", ["", '"', "%C3%A9", "%F0%9F%9B%B0", "%C2%80", "a,b", "%00"])
def test_values_are_decoded(text):
    assert Query(f"e={text}").text("e") == unquote(text)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=60))
def test_no_query_string_is_too_strange(text):
    query = Query(f"{text}&n=x")
    query.text("n")
    query.whole("n")
    with pytest.raises(Refused):
        query.finish()
