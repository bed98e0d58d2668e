"""Frames of HTTP/2 made by hand, and connections to send them over."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct

from tests.waiting import PATIENCE_SECONDS

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, SETTINGS, GOAWAY = 1, 4, 7
END_STREAM_AND_HEADERS = 5


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
