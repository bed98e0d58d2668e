"""O6: connections of an address are bounded, and one whose calls are all refused is closed."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
from urllib.parse import urlsplit

from tests.conformance.api import HOUR_S
from tests.service.service import prepare, start
from tests.waiting import until, until_refused

from .conftest import ON
from .hostile import SETTINGS, call_of, connected
from .messages import SECOND_NS, encode, record
from .station import INGEST, Station

BODY = encode(record(HOUR_S * SECOND_NS, "e"))
DESCRIPTORS = 1_024
ADDRESS_MAX = DESCRIPTORS // 4
BAD_KEY = b"ftk_sandbox_" + b"a" * 16 + b"_" + b"b" * 52
WRITE = f"/{INGEST}/Write".encode()


def test_o6_a_connection_whose_last_ten_calls_were_refused_is_closed(service):
    with connected(service.ready) as (connection, answers):
        for call in range(10):
            connection.sendall(call_of(WRITE, 2 * call + 1, x_api_key=BAD_KEY))
        # Reading ends when the service ends the connection; the first frame is that of settings.
        assert answers.read()[3] == SETTINGS


def test_o6_a_connection_with_a_good_call_among_ten_stays(own):
    service = own()
    with contextlib.closing(Station(service.ready)) as station:
        for _ in range(3):
            for _ in range(9):
                refused = station.write(BODY, BAD_KEY.decode())
                assert refused.refusal == ("UNAUTHENTICATED", "auth_failed")
            assert station.write(BODY, own.key).status == "OK"
    service.stop()
    lines = map(json.loads, (own.data / "serve.log").read_text().splitlines())
    served = [line for line in lines if line["event"] == "request"]
    assert len({line["client"] for line in served}) == 1


def test_o6_silent_connections_of_one_address_leave_room_for_others(tmp_path):
    """4,696 of them used up the descriptors: new clients came to nothing."""
    data = tmp_path / "data"
    key = prepare(data)
    limit = ("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}")
    service = start(data, key, *ON, within=limit)
    host, _, port = service.ready["grpc"].rpartition(":")
    with contextlib.ExitStack() as stack:
        stack.callback(service.end)
        used = stack.enter_context(contextlib.closing(Station(service.ready)))
        assert used.write(BODY, key).status == "OK"
        silent = [
            stack.enter_context(socket.create_connection((host, int(port))))
            for _ in range(2 * ADDRESS_MAX)
        ]
        poll = select.poll()
        for each in silent:
            poll.register(each, select.POLLRDHUP)
        until(lambda: len(poll.poll(0)) >= len(silent) - ADDRESS_MAX)
        assert used.write(BODY, key).status == "OK"
        fresh = stack.enter_context(
            contextlib.closing(Station(service.ready, ("grpc.use_local_subchannel_pool", 1)))
        )
        assert fresh.write(BODY, key, wait_for_ready=True).status == "OK"


def test_connections_are_refused_once_it_stops_though_a_call_is_under_way(own):
    """Clients of HTTP hung for twenty seconds beside a call that sent nothing, and were reset."""
    service = own()

    with contextlib.closing(Station(service.ready)) as station:
        assert station.write(BODY, own.key).status == "OK"
        metadata = (("x-api-key", own.key),)
        silent = station.channel.stream_unary(f"/{INGEST}/Write").future(
            until_asked(asked := threading.Event()), metadata=metadata
        )
        service.process.terminate()
        until_refused(urlsplit(service.ready["http"]).netloc)
        assert not silent.done()
        asked.set()
        silent.exception()


def until_asked(asked):
    """Messages of a call: none, until it may end."""
    asked.wait()
    yield from ()
