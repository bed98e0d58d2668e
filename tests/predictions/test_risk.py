"""The probability that a value falls below a threshold, over the listener for other protocols."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from tests.conformance.api import refusal

PATH = "/forecasts/v1/risk"


def on_adapters(tenant):
    """The tenant as a client of the listener for other protocols."""
    service = copy(tenant.service)
    service.address = urlsplit(service.ready["adapters"]).netloc
    return replace(tenant, service=service)


def risks(tenant, threshold, **asked):
    answer = on_adapters(tenant).get(PATH, threshold=threshold, **asked)
    assert answer.status == 200, answer.body
    return answer.json


@pytest.mark.parametrize(("family", "entity"), [("snr", "link-1"), ("demand", "pool-1")])
def test_it_is_the_answer_of_predictions_with_probabilities(fleet, family, entity):
    asked = {"model_family": family, "link_ids": entity}
    forecasts = fleet.get("/predictions", **asked).json
    level = forecasts["items"][0]["value"]
    lowest, median = list(level.values())[:2]
    found = risks(fleet, median, **asked)
    assert found.pop("threshold") == median
    probabilities = [(item.pop("below"), item.pop("above")) for item in found["items"]]
    del found["captured_at"], forecasts["captured_at"]
    assert found == forecasts
    assert probabilities[0] == (0.5, 0.5)
    assert all(0 <= below <= 1 and below + above == 1 for below, above in probabilities)
    assert risks(fleet, lowest, **asked)["items"][0]["below"] < 0.5
    everywhere = risks(fleet, 1e15, **asked)["items"]
    assert [round(item["below"], 3) for item in everywhere] == [1] * len(forecasts["items"])


def test_one_horizon_and_errors_of_entities(fleet):
    found = risks(fleet, 9, link_ids=["link-1", "short", "link-2"], horizon_minutes=15)
    assert [item["link_id"] for item in found["items"]] == ["link-1", "link-2"]
    assert {item["horizon_minutes"] for item in found["items"]} == {15}
    assert [error["entity_id"] for error in found["entity_errors"]] == ["short"]


@pytest.mark.parametrize("threshold", ["", "nan", "-inf", "high", "1e999", "%FF", "9&threshold=9"])
def test_a_threshold_is_one_finite_number(tenant, threshold):
    answer = on_adapters(tenant).get(f"{PATH}?link_ids=a&threshold={threshold}")
    assert refusal(answer) == (
        400,
        {"error": "invalid_query_parameter", "parameter": "threshold"},
    )


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("threshold=9", 400, "missing_link_ids"),
        ("link_ids=a", 400, "invalid_query_parameter"),
        ("link_ids=a&threshold=9&other=1", 400, "unknown_query_parameter"),
        ("link_ids=a&threshold=9&horizon_minutes=7", 400, "invalid_query_parameter"),
        ("threshold=9" + "&link_ids=a" * 101, 400, "too_many_link_ids"),
    ],
)
def test_requests_are_refused_as_those_for_predictions(tenant, query, status, code):
    answer = on_adapters(tenant).get(f"{PATH}?{query}")
    assert (answer.status, answer.json["error"]) == (status, code)


def test_a_key_needs_the_scope_of_predictions(accounts, tenant):
    key = accounts.key(tenant.name, scopes=["topology:read", "telemetry:write"])
    asked = f"{PATH}?link_ids=a&threshold=9"
    assert on_adapters(tenant).get(asked, key=key).status == 403
    assert on_adapters(tenant).get(asked, key=None).status == 401
    assert tenant.get(asked).status == 404, "the public listener has no such path"  # A1


def test_what_is_not_enabled_explains_nothing(disabled):
    answer = on_adapters(disabled.tenant()).get(f"{PATH}?link_ids=a&threshold=9")
    assert refusal(answer) == (404, {"error": "predictions_not_enabled"})
