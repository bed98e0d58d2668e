"""Connections: reused, pipelined, half-open, slow, and ended."""

import os
import signal
from contextlib import ExitStack

import pytest

from client import PATIENCE_SECONDS, serve
from tests.waiting import until, until_refused

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"


def test_pipelined_requests_are_answered_in_order(server):
    requests = b"".join(
        b"POST /%d HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (number, number) + b"x" * number
        for number in range(20)
    )
    with server.client() as client:
        client.send(requests)
        answers = [client.response().json for _ in range(20)]
    assert [(a["PATH_INFO"], a["bytes"]) for a in answers] == [(f"/{n}", n) for n in range(20)]


@pytest.mark.parametrize(
    ("version", "field", "kept"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: close\r\n", False),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: keep-alive\r\n", True),
    ],
)
def test_keep_alive(server, version, field, kept):
    request = b"GET / HTTP/" + version + b"\r\n" + field + b"\r\n"
    with server.client() as client:
        answer = client.send(request).response()
        assert answer.headers["Connection"] == ("keep-alive" if kept else "close")
        if kept:
            assert client.send(request).response().status == 200
        else:
            assert client.rest() == b""


def test_half_open_connections_delay_nobody(server):
    with ExitStack() as stack:
        for number in range(200):
            client = stack.enter_context(server.client())
            half = (b"GET / HT", POST + b"Content-Length: 9\r\n\r\nabc", b"")[number % 3]
            client.send(half)
        with server.client() as healthy:
            for _ in range(50):
                assert healthy.send(GET).response().status == 200


def test_readers_that_do_not_read_hold_no_thread(server):
    size = 12_000_000  # more than the kernel takes off the server's hands
    with ExitStack() as stack:
        slow = [stack.enter_context(server.client(buffer_bytes=65_536)) for _ in range(4)]
        for client in slow:
            client.send(b"GET /large?bytes=%d HTTP/1.1\r\n\r\n" % size)
        assert server.ask(GET).status == 200
        for client in slow:
            assert len(client.response().body) == size


@pytest.mark.parametrize("begun", [b"", b"GET / HT", POST + b"Content-Length: 9\r\n\r\nabc"])
def test_deadlines_close_without_an_answer(hasty, begun):
    with hasty.client() as client:
        assert client.send(begun).rest() == b""


@pytest.mark.parametrize("begun", [b"GET /", POST + b"Content-Length: 1000000\r\n\r\n"])
def test_bytes_do_not_restart_a_deadline(hasty, begun):
    with hasty.client() as client:
        client.send(begun)
        client.sock.settimeout(0.02)
        for _ in range(int(PATIENCE_SECONDS / 0.02)):
            try:
                client.send(b"a")
                if client.sock.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
        pytest.fail("it was still open")


def test_an_idle_connection_is_closed(hasty):
    def answer():
        """All that comes, to the end of the connection."""
        with hasty.client() as client:
            return client.send(GET).rest()

    # It is idle before its first request as well, and a slow machine may ask too late.
    assert until(lambda: answer().startswith(b"HTTP/1.1 200 "))


def test_connections_beyond_the_limit_push_out_the_oldest():
    with serve(limits={"connections_max": 4}) as server, ExitStack() as stack:
        held = [stack.enter_context(server.client()).send(b"GET") for _ in range(6)]
        assert held[0].rest() == b""
        assert server.ask(GET).status == 200


def test_sigterm_finishes_what_is_under_way(gate):
    with serve() as server, server.client() as busy, server.client() as sending:
        assert sending.send(GET).response().status == 200
        sending.send(POST + b"Content-Length: 3\r\n\r\na")
        busy.send(b"GET %s HTTP/1.1\r\n\r\n" % gate.path.encode())
        with gate.entered():
            server.process.send_signal(signal.SIGTERM)
            until_refused(f"127.0.0.1:{server.port}")
            sending.send(b"bc")
        assert busy.response().headers["Connection"] == "close"
        assert sending.response().json["body"] == "abc"
        out, err = server.process.communicate(timeout=PATIENCE_SECONDS)
    assert (server.process.returncode, out, err) == (0, "opened\nclosed\n", "")


def test_every_worker_opens_and_closes_its_own_application():
    with serve(workers=2) as server:
        assert [server.process.stdout.readline() for _ in range(2)] == ["opened\n"] * 2
        status, out, _ = server.stop()
    assert (status, out) == (0, "closed\n" * 2)


def test_workers_do_not_outlive_the_arbiter():
    with serve() as server, server.client() as client:
        assert client.send(GET).response().status == 200
        os.kill(server.process.pid, signal.SIGKILL)
        assert client.rest() == b""
