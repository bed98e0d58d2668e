"""I1 to I7, A16, A18: which requests are refused, in which order and words."""

from __future__ import annotations

import pytest

from tests.conformance.api import refusal


def invalid(parameter):
    return 400, {"error": "invalid_query_parameter", "parameter": parameter}


@pytest.mark.parametrize(
    "query",
    ["", "?unknown=1", "?link_ids=a&model_family=nope", "?horizon_minutes=x", "?link_ids=a"],
)
def test_i1_what_is_not_enabled_explains_nothing(disabled, query):
    tenant = disabled.tenant()
    answer = tenant.get(f"/predictions{query}")
    assert refusal(answer) == (404, {"error": "predictions_not_enabled"})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("other=1", (400, {"error": "unknown_query_parameter", "parameter": "other"})),  # I4
        ("%FF=1", (400, {"error": "unknown_query_parameter", "parameter": "\ufffd"})),
        ("", (400, {"error": "missing_link_ids"})),
        ("link_ids=", (400, {"error": "missing_link_ids"})),  # I5
        ("link_ids=&horizon_minutes=x", (400, {"error": "missing_link_ids"})),
        ("link_ids=%FF", invalid("link_ids")),  # A16
        ("link_ids=a&link_ids=b%C3", invalid("link_ids")),
        ("link_ids=a&horizon_minutes=5%FF", invalid("horizon_minutes")),
        ("link_ids=a&horizon_minutes=%ED%A0%80", invalid("horizon_minutes")),
        ("link_ids=a&model_family=snr%FF", invalid("model_family")),
        ("link_ids=a&model_family=snr%FF&horizon_minutes=x", invalid("model_family")),
        ("link_ids=a&model_family=nope", invalid("model_family")),  # I3
        ("link_ids=a&model_family=", invalid("model_family")),
        ("link_ids=a&model_family=snr&model_family=snr", invalid("model_family")),  # A18
        ("link_ids=a&horizon_minutes=5&horizon_minutes=5", invalid("horizon_minutes")),
        ("link_ids=a&horizon_minutes=0", invalid("horizon_minutes")),
        ("link_ids=a&horizon_minutes=-5", invalid("horizon_minutes")),
        ("link_ids=a&horizon_minutes=7", invalid("horizon_minutes")),  # I7
        (f"link_ids=a&horizon_minutes={10**30}", invalid("horizon_minutes")),
        ("link_ids=a&horizon_minutes=360", invalid("horizon_minutes")),
        ("link_ids=a&model_family=demand&horizon_minutes=5", invalid("horizon_minutes")),
    ],
)
def test_i3_to_i7_a_request_that_is_refused(tenant, query, expected):
    assert refusal(tenant.get(f"/predictions?{query}")) == expected


@pytest.mark.parametrize("value", ["abc", "", "5.0", "5e0", "%2B"])
def test_i3_what_is_no_whole_number_is_422(tenant, value):
    answer = tenant.get(f"/predictions?link_ids=a&horizon_minutes={value}")
    assert answer.status == 422
    (item,) = answer.json["detail"]
    assert (item["type"], item["loc"]) == ("int_parsing", ["query", "horizon_minutes"])


def test_i6_the_cap_counts_before_duplicates_are_dropped(tenant):
    hundred = "&".join(["link_ids=a"] * 100)
    assert tenant.get(f"/predictions?{hundred}").status == 200
    answer = tenant.get(f"/predictions?{hundred}&link_ids=")
    assert refusal(answer) == (400, {"error": "too_many_link_ids", "max": 100})


def test_i4_i5_i6_the_order_of_refusals(tenant):
    many = "&".join(["link_ids=a"] * 101)
    assert tenant.get(f"/predictions?x=1&{many}").json["error"] == "unknown_query_parameter"
    assert tenant.get(f"/predictions?{many}&horizon_minutes=x").json["error"] == "too_many_link_ids"
