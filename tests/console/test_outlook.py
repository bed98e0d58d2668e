"""Probabilities from quantiles, and the outlook of a tenant."""

import pytest

from fleetcast.console.views.outlook import probability_below

LEVELS = (0.1, 0.5, 0.9)


@pytest.mark.parametrize(
    ("threshold", "probability"),
    [(3.0, 0.1), (4.0, 0.1), (6.0, 0.3), (8.0, 0.5), (11.0, 0.8), (12.0, 0.9), (99.0, 0.9)],
)
def test_a_probability_lies_between_its_quantiles(threshold, probability):
    assert probability_below(threshold, LEVELS, (4.0, 8.0, 12.0)) == pytest.approx(probability)


def test_quantiles_that_are_equal_are_a_step():
    assert probability_below(5.0, LEVELS, (5.0, 5.0, 5.0)) == 0.1
    assert probability_below(5.1, LEVELS, (5.0, 5.0, 5.0)) == 0.9


def test_a_tenant_without_links_has_an_empty_outlook(operator):
    pytest.importorskip("onnxruntime")
    answer = operator.read("tenants/acme/outlook?threshold=4.5")
    assert answer["threshold"] == 4.5
    assert answer["pools"] == {"total": 0, "rows": []}
    refused = operator.ask("api/tenants/acme/outlook?threshold=low")
    assert (refused.status, refused.json["field"]) == (400, "threshold")
