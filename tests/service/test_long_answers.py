"""O3, N3: answers that repeat names for each entity, over HTTP."""

from __future__ import annotations

import datetime as dt
import json
import socket
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.waiting import PATIENCE_SECONDS, until

from .service import running, whole_lines

MEBIBYTE = 1_048_576
ENTITIES = 60
FIELDS = 240
NAME = "n" * 4_000
PATH = "/topology?freshness_seconds=604800"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("long") / "data"


@pytest.fixture(scope="module")
def service(data):
    """A tenant whose names are stored once, a megabyte, and answered sixty times."""
    hour_ago = (dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)).isoformat()
    with running(data, "--workers", "1") as service:
        fields = {f"{NAME}{number:03}": number / 4 for number in range(FIELDS)}
        for entity in range(ENTITIES):
            tags = {"entity_id": f"e{entity:02}"}
            written = {"measurement": "link", "time": hour_ago, "tags": tags, "fields": fields}
            assert service.request("POST", "/telemetry", body=json.dumps([written])).status == 202
        yield service


def peak_bytes(service) -> int:
    """The most memory that the worker has had so far."""
    (worker,) = service.workers("http")
    lines = Path(f"/proc/{worker}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def raw(service, version: str, fields: str = "") -> socket.socket:
    host, _, port = service.address.rpartition(":")
    sock = socket.socket()
    sock.settimeout(PATIENCE_SECONDS)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    sock.connect((host, int(port)))
    sock.sendall(f"GET {PATH} HTTP/{version}\r\nx-api-key: {service.key}\r\n{fields}\r\n".encode())
    return sock


def log_lines(data: Path) -> list[dict]:
    lines = map(json.loads, whole_lines(data / "serve.log"))
    return [line for line in lines if line.get("route") == "/topology"]


def test_o3_n3_a_name_that_each_entity_is_answered_with_takes_its_bytes_once(service):
    service.get("/topology")  # nothing is that new, and all is followed
    before = peak_bytes(service)
    with closing(raw(service, "1.1")) as unread, closing(service.connect()) as wire:
        assert unread.recv(1, socket.MSG_PEEK)
        answer = service.request("GET", PATH, connection=wire)
        assert answer.headers["Transfer-Encoding"] == "chunked"
        assert "Content-Length" not in answer.headers
        entities = answer.json["entities"]
        assert [len(entity["fields"]) for entity in entities] == [FIELDS] * ENTITIES
        assert service.request("GET", "/topology", connection=wire).json["entities"] == []
    # One copy of the answer would be more; what threads keep for themselves varies by megabytes.
    grown = peak_bytes(service) - before
    assert grown < len(answer.body) * 2 / 3, (
        f"{grown} bytes more for an answer of {len(answer.body)}"
    )


def test_n3_a_name_that_is_a_channel_of_each_entity_takes_its_bytes_once(service):
    now = dt.datetime.now(dt.UTC)
    asked = {
        "entity_id": [f"e{entity:02}" for entity in range(16)],
        "measurement": "link",
        "start": (now - dt.timedelta(minutes=110)).isoformat(),
        "end": (now - dt.timedelta(minutes=50)).isoformat(),
    }
    path = f"/topology/series?{urlencode(asked, doseq=True)}"
    service.request("GET", "/topology")
    before = peak_bytes(service)
    answer = service.request("GET", path)
    assert answer.headers["Transfer-Encoding"] == "chunked"
    channels = [list(entity["channels"].values()) for entity in answer.json["series"]]
    assert channels == [[[number / 4] for number in range(FIELDS)]] * 16
    grown = peak_bytes(service) - before
    assert grown < len(answer.body) / 2, f"{grown} bytes more for an answer of {len(answer.body)}"


def test_o3_http_1_0_takes_it_up_to_the_end_and_head_tells_no_length(service):
    whole = service.request("GET", PATH).json
    with closing(raw(service, "1.0", "Connection: keep-alive\r\n")) as sock:
        received = b"".join(iter(lambda: sock.recv(MEBIBYTE), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"\r\nConnection: close" in head
    assert b"Transfer-Encoding" not in head
    assert json.loads(body)["entities"] == whole["entities"]
    with closing(service.connect()) as wire:
        for method in ("HEAD", "GET"):
            answer = service.request(method, PATH, connection=wire)
            assert answer.status == 200
            assert (answer.body == b"") == (method == "HEAD")
            assert "Content-Length" not in answer.headers


def test_o3_a_client_that_goes_away_leaves_a_line_in_the_log_and_nothing_else(service, data):
    before = len(log_lines(data))
    size = len(service.request("GET", PATH).body)
    until(lambda: len(log_lines(data)) > before)
    known = len(log_lines(data))
    with closing(raw(service, "1.1")) as sock:
        assert sock.recv(1)
        assert len(log_lines(data)) == known, "it is under way"
    until(lambda: len(log_lines(data)) == known + 1)
    cut = log_lines(data)[-1]
    assert (cut["status"], 0 < cut["bytes_out"] < size) == (200, True)
    whole = service.request("GET", PATH)  # its instant may have fewer digits than the first had
    until(lambda: log_lines(data)[-1]["bytes_out"] == len(whole.body))
