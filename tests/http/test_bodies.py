"""Bodies: buffered whole, refused unread, or skipped."""

import socket
from contextlib import ExitStack
from pathlib import Path

POST = b"POST / HTTP/1.1\r\nHost: a\r\n"


def test_a_body_in_pieces_arrives_whole(server):
    body = bytes(range(97, 123)) * 20_000
    with server.client() as client:
        client.send(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body[:10])
        for at in range(10, len(body), 100_003):
            client.send(body[at : at + 100_003])
        answer = client.response()
    assert (answer.json["bytes"], answer.json["body"]) == (len(body), body[:64].decode())


def test_chunks_are_never_read(server):
    with server.client() as client:
        client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n")
        answer = client.response()
        assert answer.json["HTTP_TRANSFER_ENCODING"] == "chunked"
        assert answer.json["bytes"] == 0
        assert answer.headers["Connection"] == "close"
        assert client.rest() == b""


def test_the_longest_body_is_buffered_and_one_byte_more_is_not(server):
    longest = 1_048_576
    for size, seen in ((longest, longest), (longest + 1, 0)):
        request = POST + b"Content-Length: %d\r\n\r\n" % size + b"a" * size
        with server.client() as client:
            answer = client.send(request).response()
            assert (answer.json["CONTENT_LENGTH"], answer.json["bytes"]) == (str(size), seen)
            assert answer.headers["Connection"] == ("keep-alive" if seen else "close")


def test_an_oversized_body_is_drained_so_that_the_answer_can_be_read(server):
    with server.client() as client:
        client.send(POST + b"Content-Length: 6000000\r\n\r\n" + b"a" * 6_000_000)
        assert client.response().json["bytes"] == 0
        assert client.rest() == b""


def test_a_short_body_reaches_the_app_and_ends_the_connection(server):
    with server.client() as client:
        client.send(POST + b"Content-Length: 10\r\n\r\nabc")
        client.sock.shutdown(socket.SHUT_WR)
        answer = client.response()
        assert (answer.json["CONTENT_LENGTH"], answer.json["body"]) == ("10", "abc")
        assert answer.headers["Connection"] == "close"
        assert client.rest() == b""


def test_no_body_at_all_is_short_too(server):
    with server.client() as client:
        client.send(POST + b"Content-Length: 10\r\n\r\n")
        client.sock.shutdown(socket.SHUT_WR)
        assert client.response().json["bytes"] == 0


def test_expect_continue_is_answered_when_the_body_is_acceptable(server):
    with server.client() as client:
        client.send(POST + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert client.response().status == 100
        assert client.send(b"abc").response().json["body"] == "abc"


def test_expect_continue_is_refused_by_the_answer_when_it_is_not(server):
    with server.client() as client:
        client.send(POST + b"Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n")
        answer = client.response()
        assert (answer.status, answer.headers["Connection"]) == (200, "close")


def test_the_body_of_a_get_is_skipped(server):
    with server.client() as client:
        client.send(b"GET /a HTTP/1.1\r\nContent-Length: 100000\r\n\r\n")
        assert client.response().json["bytes"] == 0
        client.send(b"a" * 100_000 + b"GET /b HTTP/1.1\r\n\r\n")
        assert client.response().json["PATH_INFO"] == "/b"


def test_head_and_204_have_no_body(server):
    with server.client() as client:
        answer = client.send(b"HEAD / HTTP/1.1\r\n\r\n").response(head_only=True)
        assert int(answer.headers["Content-Length"]) > 0
        answer = client.send(b"GET /nothing HTTP/1.1\r\n\r\n").response()
        assert answer.status == 204
        assert "Content-Length" not in answer.headers
        assert client.send(b"GET / HTTP/1.1\r\n\r\n").response().status == 200


def test_a_failing_app_says_nothing_about_why(server):
    for path in (b"/fail", b"/split"):
        answer = server.ask(b"GET " + path + b" HTTP/1.1\r\n\r\n")
        assert answer.status == 500
        assert answer.json == {
            "error": "internal_error",
            "request_id": answer.headers["X-Request-Id"],
        }


def test_n9_bodies_that_nobody_wants_take_no_memory_of_the_worker(server):
    """The served application refuses a path without looking at its body."""
    count, length = 400, 1_048_576
    head = b"POST /nothing HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % length
    server.ask(b"GET / HTTP/1.1\r\n\r\n")
    before = resident_bytes(server)
    with ExitStack() as stack:
        for _ in range(count):
            client = stack.enter_context(server.client())
            assert client.send(head + b"half of it").response().status == 204
        assert resident_bytes(server) - before < count * length / 20


def resident_bytes(server):
    """Memory of the worker: the arbiter's only child."""
    arbiter = Path(f"/proc/{server.process.pid}")
    (worker,) = (arbiter / "task" / arbiter.name / "children").read_text().split()
    status = Path(f"/proc/{worker}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024
