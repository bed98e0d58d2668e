"""Every refusal has a row, and its headers."""

import pytest

from fleetcast.errors import StoreDamaged, StoreFull, StoreUnavailable, refused
from fleetcast.http.answers import error_response
from fleetcast.surface.error_codes import ERROR_CODES


def answer(error):
    return error_response(error, backend="embedded", request_id="r1")


@pytest.mark.parametrize(
    ("code", "context"),
    [
        ("batch_too_large", {"max": 1000, "received": 1001}),
        ("invalid_input", {"field": "tags"}),
        ("field_type_conflict", {"field": "snr_db"}),
        ("unknown_measurement", {"allowed": ["link"]}),
        ("agg_requires_interval", {}),
        ("invalid_range", {}),
        ("history_horizon_exceeded", {"horizon_days": 30}),
        ("interval_required", {"min_interval": "1m"}),
        ("interval_too_fine", {"min_interval": None}),
    ],
)
def test_what_the_engine_refuses_keeps_its_context(code, context):
    response = answer(refused(code, **context))
    assert response.status == ERROR_CODES[code].http
    assert response.content == {"error": code, **context}
    assert response.headers == []


def test_schema_faults_are_a_bare_list():
    faults = [{"type": "missing", "loc": ["body"], "msg": "Field required"}]
    response = answer(refused("schema_faults", detail=faults))
    assert (response.status, response.content) == (422, {"detail": faults})


@pytest.mark.parametrize("code", [code for code, row in ERROR_CODES.items() if row.http == 429])
def test_429_says_when_in_the_header_alone(code):
    response = answer(refused(code, retry_after_seconds=12))
    assert response.content == {"error": code}
    assert response.headers == [("Retry-After", "12")]


@pytest.mark.parametrize("code", [code for code, row in ERROR_CODES.items() if row.http == 503])
def test_503_says_when_twice(code):  # J8
    response = answer(refused(code))
    seconds = 1 if code == "ingest_buffer_full" else 5
    assert response.content == {"error": code, "retry_after_seconds": seconds}
    assert response.headers == [("Retry-After", str(seconds))]


@pytest.mark.parametrize("kind", [StoreUnavailable, StoreFull, StoreDamaged])
def test_store_errors_name_the_backend_and_nothing_else(kind):  # J7
    response = answer(kind("/secret/path"))
    assert response.status == 503
    assert response.content == {
        "error": "telemetry_unavailable",
        "upstream": "embedded",
        "retry_after_seconds": 5,
    }


@pytest.mark.parametrize("error", [RuntimeError("secret"), refused("no_such_code")])
def test_the_unforeseen_is_500(error):
    response = answer(error)
    assert response.status == 500
    assert response.content == {"error": "internal_error", "request_id": "r1"}


def test_401_names_the_scheme():
    expected = ("WWW-Authenticate", 'ApiKey realm="fleet-telemetry"')
    assert answer(refused("auth_failed")).headers == [expected]
