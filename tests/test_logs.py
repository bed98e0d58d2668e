"""Lines of the log are JSON, whatever is in them."""

import json
from datetime import datetime

from fleetcast.log_lines import Served, timestamp


def test_a_line_of_the_access_log():
    served = Served(
        request_id="0f" * 16,
        method="GET",
        route="/topology",
        status=200,
        error=None,
        tenant="acme",
        key_id='a"\\\n\u2028\ud800',
        client="fe80::1%eth0",
        seconds=0.0123456,
        bytes_in=0,
        bytes_out=12,
        process="http",
    )
    line = json.loads(str(served))
    assert datetime.fromisoformat(line.pop("timestamp")).utcoffset().total_seconds() == 0
    assert line == {
        "event": "request",
        "request_id": "0f" * 16,
        "method": "GET",
        "route": "/topology",
        "status": 200,
        "error": None,
        "tenant": "acme",
        "key_id": 'a"\\\n\u2028\ud800',
        "client": "fe80::1%eth0",
        "duration_ms": 12.346,
        "bytes_in": 0,
        "bytes_out": 12,
        "level": "info",
        "logger": "fleetcast.access",
        "process": "http",
    }
    assert str(served).isascii()
    assert "\n" not in str(served)


def test_instants_are_read_back_as_they_were(monkeypatch):
    for nanoseconds in (1_700_000_000_000_000_000, 1_700_000_000_000_007_999):
        monkeypatch.setattr("time.time_ns", lambda at=nanoseconds: at)
        read = datetime.fromisoformat(timestamp())
        assert round(read.timestamp() * 1e6) == nanoseconds // 1000
