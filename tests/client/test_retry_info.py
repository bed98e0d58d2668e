"""The delay that the service asks for is found by the type of its message."""

from base64 import b64decode

import pytest

from fleetcast.client.transport import _retry_seconds
from fleetcast.protobuf import delimited, integer


def detail(type_url, delay):
    return delimited(3, delimited(1, type_url) + delimited(2, delimited(1, delay)))


def test_what_the_service_sends_is_understood():
    """The same bytes as in `rust/grpc/src/tests/writes.rs`."""
    text = (
        "CA4SFXRlbGVtZXRyeV91bmF2YWlsYWJsZRowCih0eXBlLmdvb2dsZWFwaXMuY29tL2dvb2dsZS5ycGMu"
        "UmV0cnlJbmZvEgQKAggF"
    )
    assert _retry_seconds(b64decode(text)) == 5.0


@pytest.mark.parametrize(
    ("status", "seconds"),
    [
        (None, None),
        (b"", None),
        (b"\xff", None),
        (delimited(3, b""), None),
        (detail("type.googleapis.com/google.rpc.ErrorInfo", integer(1, 7)), None),
        (detail("example.com/google.rpc.RetryInfo", integer(1, 7)), 7.0),
        (detail("type.googleapis.com/google.rpc.RetryInfo", integer(2, 500_000_000)), 0.5),
        (detail("a/other", integer(1, 7)) + detail("a/google.rpc.RetryInfo", integer(1, 8)), 8.0),
        (detail("google.rpc.RetryInfo'", integer(1, 7)), None),
        (delimited(3, delimited(1, "a/google.rpc.RetryInfo")), None),
    ],
)
def test_a_delay_has_its_own_type(status, seconds):
    assert _retry_seconds(status) == seconds
