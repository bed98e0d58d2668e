"""Query parameters and their faults."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.errors import Refused
from fleetcast.http.resources.params import Query, check_characters


def faults(query):
    with pytest.raises(Refused) as caught:
        query.finish()
    code, context = caught.value.args
    assert code == "schema_faults"
    return [(fault["type"], fault["loc"]) for fault in context["detail"]]


def test_plus_is_a_space_and_empty_pairs_are_nothing():
    query = Query("&&a=x+y%2Bz&&b=&c")
    assert (query.text("a"), query.text("b"), query.text("c")) == ("x y+z", "", "")
    assert query.text("d") is None
    query.finish()


def test_a_single_value_may_not_repeat():
    query = Query("interval=1m&interval=1m")
    assert query.choice("interval", ["1m", "5m"]) is None
    assert faults(query) == [("multiple_values", ["query", "interval"])]


@pytest.mark.parametrize("text", ["", "now", "1700000000", "2026-01-01T24:00:00Z", "%FF"])
def test_bad_times(text):
    query = Query(f"start={text}")
    assert query.time("start") is None
    assert faults(query) == [("datetime_from_date_parsing", ["query", "start"])]


def test_a_lost_plus_is_explained():
    query = Query("start=2026-01-01T00:00:00+00:00")
    query.time("start")
    with pytest.raises(Refused) as caught:
        query.finish()
    assert "%2B" in caught.value.args[1]["detail"][0]["msg"]


def test_times_are_nanoseconds():
    query = Query("start=1970-01-01T00:00:01%2B00:00")
    assert query.time("start", required=True) == 1_000_000_000
    query.finish()


@pytest.mark.parametrize("text", ["1", "604800", "1e3", "%2B5", "2.5", "1E%2B2"])
def test_numbers(text):
    query = Query(f"n={text}")
    assert 1 <= query.number("n", default=300, value_min=1, value_max=604_800) <= 604_800
    query.finish()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *((text, "float_parsing") for text in ["nan", "inf", "-inf", "1_000", "", "+5", "5+"]),
        *((text, "float_parsing") for text in ["01", ".5", "5.", "0x1", "%D9%A3", "1e", "%FF"]),
        *((text, "greater_than_equal") for text in ["0", "-1", "0.999", "-1e999"]),
        *((text, "less_than_equal") for text in ["604801", "604800.1", "1e999"]),
    ],
)
def test_bad_numbers(text, kind):
    query = Query(f"n={text}")
    query.number("n", default=300, value_min=1, value_max=604_800)
    assert faults(query) == [(kind, ["query", "n"])]


def test_choices_list_what_there_is():
    query = Query("interval=2m")
    query.choice("interval", ["15s", "30s", "1m"])
    with pytest.raises(Refused) as caught:
        query.finish()
    assert caught.value.args[1]["detail"] == [
        {
            "type": "literal_error",
            "loc": ["query", "interval"],
            "msg": "Input should be '15s', '30s' or '1m'",
        }
    ]


def test_lists_are_counted_before_duplicates_are_dropped():
    assert Query("e=b&e=a&e=b").texts("e", count_max=16) == ["b", "a"]
    query = Query("&".join(["e=a"] * 17))
    query.texts("e", count_max=16)
    assert faults(query) == [("too_long", ["query", "e"])]


def test_list_items_may_not_be_empty():
    query = Query("e=a&e=&e")
    query.texts("e", count_max=16)
    assert faults(query) == [
        ("string_too_short", ["query", "e", 1]),
        ("string_too_short", ["query", "e", 2]),
    ]


def test_all_faults_come_together():
    query = Query("agg=x&n=y")
    query.texts("e", count_max=16)
    query.time("start", required=True)
    query.choice("agg", ["mean", "min"])
    query.number("n", default=1, value_min=0, value_max=2)
    assert [kind for kind, _ in faults(query)] == [
        "missing",
        "missing",
        "literal_error",
        "float_parsing",
    ]


@pytest.mark.parametrize("text", ["%00", "a%1Fb", "%7F", "%FF", "%ED%A0%80", "%C3"])
def test_refused_characters(text):
    with pytest.raises(Refused) as caught:
        check_characters("e", *Query(f"e=ok&e={text}").texts("e", count_max=16))
    assert caught.value.args == ("invalid_input", {"field": "e"})


@pytest.mark.parametrize("text", ["a b", '"', "%C3%A9", "%F0%9F%9B%B0", "%C2%80", "a,b"])
def test_other_characters_pass(text):
    (value,) = Query(f"e={text}").texts("e", count_max=16)
    check_characters("e", value)
    assert value == unquote(text)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=60))
def test_no_query_string_is_too_strange(text):
    query = Query(text)
    for name in ("a", "start", ""):
        query.text(name)
        query.time(name)
        query.number(name, default=1, value_min=0, value_max=2)
        query.texts(name, count_max=3)
    with pytest.raises(Refused):
        query.finish()
