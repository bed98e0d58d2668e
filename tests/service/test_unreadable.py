"""Records that no read shows are accepted (C30, G16), and their sender's operator hears of it."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from tests.conformance.api import at, record
from tests.waiting import PATIENCE_SECONDS

from .service import FLEETCAST, prepare, start, whole_lines
from .test_admin import metrics
from .test_front_answers import exchange

NAME = 'fleetcast_unreadable_records_total{{tenant="acme",reason="{0}"}}'
SHOWN = record(at(0))
NO_ENTITY = {**record(at(0)), "tags": {}}
OTHER = {**record(at(0)), "measurement": "bouy"}
FORECAST = {**record(at(0)), "measurement": "pool_interval"}


@pytest.fixture
def service(tmp_path):
    data = tmp_path / "data"
    options = ("--admin", "127.0.0.1:0", "--workers", "1")
    started = start(data, prepare(data), *options, "--set", "adapters.address=127.0.0.1:0")
    started.data = data
    yield started
    started.end()


def counted(service):
    found = metrics(service)
    return tuple(found.get(NAME.format(reason), 0) for reason in ("no_entity", "measurement"))


def logged(service):
    found = map(json.loads, whole_lines(service.data / "serve.log"))
    return [line for line in found if line.get("logger") == "fleetcast.unreadable"]


def lines(service, body):
    address = urlsplit(service.ready["adapters"]).netloc
    with closing(http.client.HTTPConnection(address, timeout=PATIENCE_SECONDS)) as wire:
        wire.request("POST", "/api/v2/write", body=body, headers={"x-api-key": service.key})
        return wire.getresponse().status


def test_c30_g16_what_no_read_shows_is_counted_and_named_once_whoever_answers(service):
    began = time.monotonic()
    assert service.post([SHOWN, FORECAST]).status == 202
    assert counted(service) == (0, 0)
    assert logged(service) == []
    assert service.post([SHOWN, OTHER, NO_ENTITY, NO_ENTITY]).status == 202
    assert counted(service) == (2, 1)
    body = json.dumps([NO_ENTITY, OTHER]).encode()
    answer = exchange(service, "POST", "/telemetry", service.key, "HTTP/1.2", body)
    assert answer.status == 202
    assert counted(service) == (3, 2)
    assert lines(service, b"cpu value=1\nlink,host=a snr_db=1\ncpu,host=a value=1\n") == 204
    assert counted(service) == (4, 3)
    found = logged(service)
    named = {(line["process"], line["reason"], line["measurement"]) for line in found}
    assert named == {
        ("adapters", "measurement", "cpu"),
        ("adapters", "no_entity", "cpu"),
        ("http", "measurement", "bouy"),
        ("http", "no_entity", "link"),
    }
    minutes = 1 + (time.monotonic() - began) // 60  # a line a minute, if this takes so long
    assert len(found) <= minutes * len(named)
    assert {line["tenant"] for line in found} == {"acme"}
    assert all(line["key_id"] for line in found)


def test_doctor_warns_of_them(service):
    def warnings():
        command = [*FLEETCAST, "doctor", "--data", str(service.data), "--json"]
        run = subprocess.run(command, capture_output=True, check=False, text=True)
        checks = json.loads(run.stdout)["checks"]
        return {each["check"]: each["detail"] for each in checks if "records of" in each["check"]}

    assert service.post([SHOWN]).status == 202
    assert warnings() == {}
    assert service.post([NO_ENTITY, SHOWN]).status == 202
    assert warnings() == {
        "records of acme": "1 records since the start have no entity_id: no read shows them"
    }
