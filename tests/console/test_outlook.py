"""The outlook of a tenant."""

import pytest


def test_a_tenant_without_links_has_an_empty_outlook(operator):
    pytest.importorskip("onnxruntime")
    answer = operator.read("tenants/acme/outlook?threshold=4.5")
    assert answer["threshold"] == 4.5
    assert answer["pools"] == {"total": 0, "rows": []}
    refused = operator.ask("api/tenants/acme/outlook?threshold=low")
    assert (refused.status, refused.json["field"]) == (400, "threshold")
