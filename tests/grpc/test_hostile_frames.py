"""Frames that no gRPC library sends."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct

import grpc
import pytest

from tests.conformance.api import HOUR_S
from tests.waiting import PATIENCE_SECONDS, until

from .messages import SECOND_NS, encode, record
from .station import INGEST, SECONDS, Station, until_serving

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, SETTINGS, GOAWAY = 1, 4, 7
END_STREAM_AND_HEADERS = 5
BODY = encode(record(HOUR_S * SECOND_NS, "e"))


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header(name, value):
    """A field that no table keeps: RFC 7541, 6.2.2, without Huffman."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def call_of(path, stream=1, **more):
    fields = {b":method": b"POST", b":scheme": b"https", b":path": path, b":authority": b"x"}
    fields |= {b"content-type": b"application/grpc", b"te": b"trailers"}
    fields |= {name.replace("_", "-").encode(): value for name, value in more.items()}
    block = b"".join(header(name, value) for name, value in fields.items())
    return frame(HEADERS, END_STREAM_AND_HEADERS, stream, block)


@contextlib.contextmanager
def connected(ready):
    """A connection of HTTP/2, to send and to read."""
    context = ssl.create_default_context(cafile=ready["grpc_ca"])
    context.set_alpn_protocols(["h2"])
    host, _, port = ready["grpc"].rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
        connection.makefile("rb") as answers,
    ):
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0))
        yield connection, answers


def send(ready, *frames):
    """Sends frames on a connection of their own, and waits until the server has taken the last."""
    with connected(ready) as (connection, answers):
        connection.sendall(b"".join(frames))
        kind = None
        while kind not in (HEADERS, GOAWAY):
            head = answers.read(9)
            kind = head[3]
            answers.read(int.from_bytes(head[:3], "big"))


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
    events = [json.loads(line)["event"] for line in text.splitlines()]
    assert any(event.startswith("grpcio says:") for event in events)
