"""Bytes of the engine that Python reads where they lie."""

from __future__ import annotations

import gc
import io
import socket
import time

import pytest

from fleetcast.engine import Front, Plane, Service, encode_records, format_time
from fleetcast.http.server.limits import ConnectionLimits

BODY = bytes(range(256)) * 64


def long_piece():
    """A piece of an answer too long to be copied, and the same bytes copied."""
    plane, now_ns = Plane.in_memory("acme"), time.time_ns()
    record = {"measurement": "link", "time": format_time(now_ns), "fields": {"a": 1.0}}
    records = [record | {"tags": {"entity_id": f"e{number}"}} for number in range(1000)]
    plane.write_json(encode_records(records))
    as_of_ns = now_ns + 1
    (shown,) = Service.latest(plane, f"as_of_utc={format_time(as_of_ns)}")
    return shown, plane.latest_json(as_of_ns=as_of_ns)


def body():
    """A body in the hands of the application, and the same bytes copied."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        limits = ConnectionLimits()
        front = Front(
            [listener.fileno()],
            threads=1,
            processes=1,
            limits=limits,
            key_fields=[],
            server=("a", 1),
        )
        with socket.create_connection(listener.getsockname()) as client:
            client.sendall(f"POST / HTTP/1.1\r\nContent-Length: {len(BODY)}\r\n\r\n".encode())
            client.sendall(BODY)
            environ = next_environ(front)
            front.close()
    return memoryview(environ["fleetcast.body"]), BODY


def next_environ(front):
    request = None
    while True:
        while not front.held()[1]:  # until it is in the queue
            front.turn(0.01)
        request = front.next_request(request)
        environ = request.environ()
        if not environ["fleetcast.body_due"] or not request.await_body():
            return environ


@pytest.mark.parametrize("show", [long_piece, body])
def test_they_stay_while_they_are_shown_and_nobody_writes_them(show):
    shown, copied = show()
    gc.collect()
    assert (bytes(shown), shown.readonly) == (copied, True)
    with pytest.raises(TypeError):
        shown[0] = 0
    for view in (shown, shown.obj):
        with pytest.raises((TypeError, BufferError)):
            io.BytesIO(b"x").readinto(view)
    assert bytes(shown) == copied
