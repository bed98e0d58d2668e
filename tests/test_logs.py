"""Lines of the log are JSON, whatever is in them."""

import json
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime

from fleetcast.log_lines import Served, timestamp, write_served

CLIENT_LINES_MAX = 10  # of one client in a second


def test_a_line_of_the_access_log(capfd):
    served = Served(
        request_id="0f" * 16,
        method="GET",
        route="/topology",
        status=200,
        error=None,
        tenant="acme",
        key_id='a"\\\n\u2028é',
        client="fe80::1%eth0",
        seconds=0.0123456,
        bytes_in=0,
        bytes_out=12,
        process="http",
    )
    write_served(served)
    text, end = capfd.readouterr().err.split("\n")
    line = json.loads(text)
    assert datetime.fromisoformat(line.pop("timestamp")).utcoffset().total_seconds() == 0
    assert line == {
        "event": "request",
        "request_id": "0f" * 16,
        "method": "GET",
        "route": "/topology",
        "status": 200,
        "error": None,
        "tenant": "acme",
        "key_id": 'a"\\\n\u2028é',
        "client": "fe80::1%eth0",
        "duration_ms": 12.346,
        "bytes_in": 0,
        "bytes_out": 12,
        "level": "info",
        "logger": "fleetcast.access",
        "process": "http",
    }
    assert end == ""


def test_an_instant_is_read_back_as_it_was():
    before, text, after = datetime.now(UTC), timestamp(), datetime.now(UTC)
    assert before <= datetime.fromisoformat(text) <= after
    assert len(text) == len("2026-01-02T03:04:05.000006Z")


def logged_by(program):
    """The exit status of `program` and what it wrote to stderr, line by line."""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    return ended.returncode, [json.loads(line) for line in ended.stderr.splitlines()]


def test_a_flood_of_refusals_is_some_lines_and_their_number_while_answers_are_all_logged():
    # One client without a key wrote 6 MB a second of lines about 429s.
    flood = 500
    started = time.monotonic()
    status, lines = logged_by(
        "from fleetcast import log_lines\n"
        "from fleetcast.logs import audit_refusal, configure_logs\n"
        "configure_logs('http')\n"
        "refused = log_lines.Served(\n"
        "    '0f', 'POST', '/t', 429, 'limited', None, None, '203.0.113.1', 0.0, 0, 0, 'http'\n"
        ")\n"
        f"for port in range({flood}):\n"
        "    log_lines.write_served(refused)\n"
        "    audit_refusal('authentication failed', client=f'ipv4:203.0.113.2:{port}')\n"
        "    log_lines.write_served(refused._replace(status=202, error=None, tenant='acme'))\n"
        "    # Calls that are given up, and answers that need no key, cost a client as little.\n"
        "    keyless = refused._replace(status='CANCELLED', error=None, client='203.0.113.3')\n"
        "    log_lines.write_served(keyless)\n"
    )
    assert status == 0
    assert {line["process"] for line in lines} == {"http"}
    lines_max = CLIENT_LINES_MAX * (time.monotonic() - started + 1)
    requests = [line for line in lines if line["event"] == "request"]
    assert sum(line["status"] == 202 for line in requests) == flood
    refused = sum(line["status"] == 429 for line in requests)
    failed = sum(line["event"] == "authentication failed" for line in lines)
    left_out = Counter()
    for line in lines:
        left_out[line["client"]] += line.get("lines", 0)
    keyless = sum(line["status"] == "CANCELLED" for line in requests)
    assert left_out["203.0.113.1"] + refused == flood
    assert left_out["203.0.113.3"] + keyless == flood
    assert left_out["ipv4:203.0.113.2"] + failed == flood
    assert 1 <= refused <= lines_max
    assert 1 <= failed <= lines_max
    assert 1 <= keyless <= lines_max


def test_what_libraries_and_threads_write_is_json():
    program = (
        "import logging, threading, warnings\n"
        "from fleetcast.logs import configure_logs\n"
        "configure_logs('http')\n"
        "warnings.warn('two\\nlines')\n"
        "logging.getLogger('gunicorn.error').error('one\\ntwo')\n"
        "logging.getLogger('grpc._cython.cygrpc').error('%s', 'x')\n"
        "def fail(): raise ValueError('of a thread')\n"
        "thread = threading.Thread(target=fail)\n"
        "thread.start(); thread.join()\n"
        "raise ValueError('of the process')\n"
    )
    status, lines = logged_by(program)
    assert status == 1
    assert len(lines) == 5
    assert {line["process"] for line in lines} == {"http"}
