"""Frames that no gRPC library sends."""

from __future__ import annotations

import json
import socket

import grpc
import pytest

from tests.conformance.api import HOUR_S
from tests.waiting import until

from .hostile import call_of, send
from .messages import SECOND_NS, encode, record
from .station import INGEST, SECONDS, Station, until_serving

BODY = encode(record(HOUR_S * SECOND_NS, "e"))


@pytest.mark.parametrize("path", [b"/\xff", b"/fleet.telemetry.v1.TelemetryIngest/Write\xc3"])
def test_a_path_that_is_no_utf_8_does_not_end_grpc(own, path):
    """A call that meets the change of servers gets UNAVAILABLE, and goes through when repeated."""
    service = own()
    station = Station(service.ready)
    watching = station.watch("")
    until_serving(watching)
    before = service.arbiter("grpc")
    for _ in range(3):
        send(service.ready, call_of(path))
        until(lambda: station.write(BODY, own.key, wait_for_ready=True).status == "OK")
    assert service.arbiter("grpc") == before
    watching.cancel()
    station.close()


def test_a_second_message_of_a_call_is_refused_and_nothing_of_either_is_stored(station, tenant):
    metadata = (("x-api-key", tenant.key),)
    call = station.channel.stream_unary(f"/{INGEST}/Write")
    with pytest.raises(grpc.RpcError) as raised:
        call(iter([BODY, BODY]), metadata=metadata, timeout=SECONDS)
    assert (raised.value.code().name, raised.value.details()) == (
        "INVALID_ARGUMENT",
        "invalid_input:payload",
    )
    assert tenant.entities() == []


def test_b22_a_key_that_is_no_utf_8_is_in_no_log_and_all_lines_are_json(own):
    """The library logged the key with a traceback. Lines of its core were no JSON."""
    service = own()
    host, _, port = service.ready["grpc"].rpartition(":")
    with socket.create_connection((host, int(port))) as plain:
        plain.sendall(b"no handshake of TLS")
        plain.shutdown(socket.SHUT_WR)
        while plain.recv(4096):
            pass
    send(service.ready, call_of(f"/{INGEST}/Write".encode(), x_api_key=own.key.encode() + b"\xff"))
    send(service.ready, call_of(b"/" + own.key.encode() + b"\xff"))
    service.stop()
    text = (own.data / "serve.log").read_text()
    assert own.key not in text
    assert own.key.rpartition("_")[2] not in text
    calls = [line for line in map(json.loads, text.splitlines()) if line["event"] == "request"]
    # The path that is no UTF-8 is no call, and no handshake is none either.
    assert [call["error"] for call in calls] == ["auth_failed"]
