"""The front as a worker drives it: turns of one thread, requests of others."""

import socket
import threading
from contextlib import contextmanager

import pytest

from client import Client
from fleetcast.engine import Front
from fleetcast.http.server.limits import ConnectionLimits

GET = b"GET /a HTTP/1.1\r\n\r\n"


@contextmanager
def running_front():
    """A front whose loop runs, and its port."""
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
        stopped = threading.Event()

        def run():
            while not stopped.is_set():
                front.turn(0.01)

        loop = threading.Thread(target=run)
        loop.start()
        try:
            yield front, listener.getsockname()[1]
        finally:
            stopped.set()
            loop.join()
            front.close()


def test_a_request_without_an_answer_loses_its_connection_though_no_other_comes():
    with running_front() as (front, port), Client(port) as client:
        client.send(GET)
        request = front.next_request()
        waiting = threading.Thread(target=front.next_request, args=[request])
        waiting.start()
        assert client.rest() == b""
        front.end_threads()
        waiting.join()


def test_a_request_has_one_answer():
    with running_front() as (front, port), Client(port) as client:
        client.send(GET)
        request = front.next_request()
        assert request.environ()["PATH_INFO"] == "/a"
        request.answer("200 OK", [("A", "b")], [b"first", memoryview(b"second")])
        for again in (
            request.environ,
            request.await_body,
            lambda: request.refuse(b"other"),
            lambda: request.answer("200 OK", [], []),
        ):
            with pytest.raises(RuntimeError):
                again()
        front.end_threads()
        assert front.next_request(request) is None
        answer = client.response()
        assert (answer.status, answer.headers["A"], answer.body) == (200, "b", b"firstsecond")
