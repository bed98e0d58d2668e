"""N6, N9: what one tenant holds of a worker, at its bound and past it, and that others go on."""

import select
import socket
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from client import PATIENCE_SECONDS, Client, serve

LARGE_BYTES = 12_000_000  # more than the kernel takes off the server's hands


def get(path, key):
    return f"GET {path} HTTP/1.1\r\nX-Api-Key: {key}\r\n\r\n".encode()


def post(key, size, body=b""):
    return f"POST / HTTP/1.1\r\nX-Api-Key: {key}\r\nContent-Length: {size}\r\n\r\n".encode() + body


def large(key):
    return get(f"/large?bytes={LARGE_BYTES}", key)


@contextmanager
def holding(server, count, request):
    """Clients that have asked and read nothing."""
    with ExitStack() as stack:
        clients = [stack.enter_context(server.client(buffer_bytes=65_536)) for _ in range(count)]
        for client in clients:
            client.send(request)
            # The answer has begun, so all of it is made, and what was not taken is counted.
            assert client.sock.recv(1, socket.MSG_PEEK)
        yield clients


def test_n6_answers_that_nobody_reads_stop_their_tenants_large_reads_alone():
    limits = {"unsent_bytes_per_tenant_max": 2 * LARGE_BYTES + 10_000, "unsent_wait_seconds": 0.1}
    with serve(limits=limits) as server:
        assert server.ask(large("a")).status == 200
        assert server.ask(get("/", "a")).status == 200
        with holding(server, 2, large("a")) as unread:
            refused = server.ask(large("a"))
            assert (refused.status, refused.body) == (503, b"too much")
            assert server.ask(get("/", "a")).status == 200
            assert server.ask(post("a", 2, b"ab")).status == 200
            assert len(server.ask(large("b")).body) == LARGE_BYTES
            for client in unread:
                assert len(client.response().body) == LARGE_BYTES
            assert server.ask(large("a")).status == 200


def test_n6_a_tenant_whose_clients_read_is_never_refused():
    """Its reads wait for as long as its clients take to make room."""
    limits = {"unsent_bytes_per_tenant_max": 1_000_000, "unsent_wait_seconds": PATIENCE_SECONDS}
    with (
        serve(limits=limits) as server,
        holding(server, 1, large("a")) as unread,
        server.client() as next_one,
    ):
        next_one.send(large("a"))
        assert server.ask(get("/", "b")).status == 200
        assert select.select([next_one.sock], [], [], 0)[0] == []
        assert len(unread[0].response().body) == LARGE_BYTES
        assert len(next_one.response().body) == LARGE_BYTES


def test_n6_reads_of_a_key_that_was_never_seen_wait_as_well():
    """All come before anybody knows whose they are: those that wait are sorted out then."""
    limits = {"unsent_bytes_per_tenant_max": 1, "unsent_wait_seconds": 0.1}
    with serve(limits=limits, threads=1) as server, ExitStack() as stack:
        clients = [stack.enter_context(server.client(buffer_bytes=65_536)) for _ in range(12)]
        for client in clients:
            client.send(large("a"))
        answers = [client.response() for client in reversed(clients)]
        assert {answer.status for answer in answers} == {200, 503}


def test_n6_who_takes_nothing_is_cut_when_a_worker_holds_too_much():
    """First those of the tenant that holds the most, and no more of them than must be."""
    limits = {"unsent_bytes_max": 30_000_000}
    with (
        serve(limits=limits) as server,
        holding(server, 1, large("b")) as one,
        holding(server, 3, large("a")) as three,
    ):
        until = time.monotonic() + PATIENCE_SECONDS
        while not any(is_closed(client) for client in three):
            assert time.monotonic() < until
        assert len(one[0].response().body) == LARGE_BYTES
        assert not all(is_closed(client) for client in three)


def test_a_client_that_takes_nothing_is_cut_however_large_its_answer_is():
    with serve(limits={"answer_seconds": 0.2}) as server, holding(server, 1, large("a")) as unread:
        until = time.monotonic() + PATIENCE_SECONDS
        while not is_closed(unread[0]):
            assert time.monotonic() < until
        assert len(unread[0].rest()) < LARGE_BYTES


def is_closed(client):
    """Tells whether the server has closed its end, which a client that reads nothing cannot see."""
    here, there = client.sock.getsockname()[1], client.sock.getpeername()[1]
    ends = f":{there:04X} 0100007F:{here:04X} "
    lines = Path("/proc/net/tcp").read_text().splitlines()
    return not any(f"{ends}01" in line for line in lines)  # 01: established


def test_n6_half_sent_bodies_take_their_tenants_share_and_no_more():
    limits = {"body_bytes_under_way_max": 4_000_000}  # of which one tenant gets two
    with serve(limits=limits, threads=1) as server, ExitStack() as stack:
        held = [stack.enter_context(server.client()) for _ in range(2)]
        for client in held:
            client.send(post("a", 1_000_000, b"a"))
            expect_admitted(server, client, "a")
        with server.client() as late:
            assert late.send(post("a", 1_000_000, b"a" * 10)).response().status == 503
        with server.client() as other:
            other.send(post("b", 1_000_000, b"b" * 1_000_000))
            assert other.response().json["bytes"] == 1_000_000
        assert held[0].send(b"a" * 999_999).response().json["bytes"] == 1_000_000
        with server.client() as again:
            again.send(post("a", 1_000_000, b"a" * 1_000_000))
            assert again.response().json["bytes"] == 1_000_000


def expect_admitted(server, client, key):
    """One thread serves a tenant in order, so the request of `client` was looked at before."""
    assert server.ask(get("/", key)).status == 200
    assert select.select([client.sock], [], [], 0)[0] == []


def test_n6_requests_that_wait_are_bounded_for_a_tenant(gate):
    """It is told so at once, though all its threads are stuck; others have theirs."""
    hold = get(gate.path, "a")
    with serve(limits={"connections_max": 16}, threads=1) as server, ExitStack() as stack:
        assert server.ask(get("/", "a")).status == 200
        clients = [stack.enter_context(server.client()) for _ in range(8)]
        clients[0].send(hold)
        entered = [stack.enter_context(gate.entered())]
        for client in clients[1:]:
            client.send(hold)
        assert server.ask(get("/", "a")).status == 503
        assert server.ask(get("/", "b")).status == 200
        for number, client in enumerate(clients):
            entered[number].close()
            assert client.response().status == 200
            if number < 7:
                entered.append(gate.entered())
        assert server.ask(get("/", "a")).status == 200


def test_n6_a_new_key_is_no_way_around_a_tenants_share(gate):
    """Nobody knows whose it is when it comes, but before its request costs anything."""
    with serve(threads=1) as server, server.client() as client:
        client.send(get(gate.path, "a-1"))
        with gate.entered():
            assert server.ask(get("/", "a-2")).status == 503
            assert server.ask(get("/", "b-1")).status == 200
        assert client.response().status == 200
        assert server.ask(get("/", "a-2")).status == 200


def test_n6_a_tenant_that_sends_its_key_as_authorization_waits_for_its_own_threads(gate):
    """Its requests count for it from the head on, and are not refused beside those under way."""
    key = b"Authorization: a\r\n"
    with serve(threads=1) as server, server.client() as holder, server.client() as second:
        assert server.ask(b"GET / HTTP/1.1\r\n" + key + b"\r\n").status == 200
        holder.send(f"GET {gate.path} HTTP/1.1\r\n".encode() + key + b"\r\n")
        with gate.entered():
            second.send(b"GET / HTTP/1.1\r\n" + key + b"\r\n")
            assert server.ask(get("/", "b")).status == 200
            assert select.select([second.sock], [], [], 0)[0] == []
        assert holder.response().status == 200
        assert second.response().status == 200


def test_n6_an_empty_key_counts_for_no_tenant(gate):
    """Else a client without a key takes the share of the tenant that used `Authorization` last."""
    key = b"Authorization: a\r\n"
    with serve(threads=1) as server, server.client() as holder:
        assert server.ask(b"GET / HTTP/1.1\r\n" + key + b"\r\n").status == 200
        holder.send(f"GET {gate.path} HTTP/1.1\r\n".encode() + key + b"\r\n")
        with gate.entered():
            assert server.ask(b"GET / HTTP/1.1\r\nX-Api-Key:\r\n\r\n").status == 200
        assert holder.response().status == 200


def test_n9_a_refusal_does_not_wait_for_the_body(server):
    """The served application refuses a path without looking at its body."""
    with server.client() as client:
        client.send(b"POST /nothing HTTP/1.1\r\nContent-Length: 100000\r\n\r\n")
        assert client.response().status == 204
        client.send(b"a" * 100_000 + b"GET / HTTP/1.1\r\n\r\n")
        assert client.response().status == 200
    with server.client() as client:
        client.send(b"POST /nothing HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
        answer = client.response()
        assert (answer.status, answer.headers["Connection"]) == (204, "close")


def test_connections_of_one_address_do_not_push_out_anothers():
    with serve(limits={"connections_max": 6}) as server, ExitStack() as stack:
        other = stack.enter_context(from_address("127.0.0.2", server.port))
        other.send(b"GET")
        held = [stack.enter_context(server.client()).send(b"GET") for _ in range(12)]
        assert held[0].rest() == b""
        assert other.send(b" / HTTP/1.1\r\n\r\n").response().status == 200


def from_address(address, port):
    client = Client.__new__(Client)
    client.sock = socket.create_connection(
        ("127.0.0.1", port), PATIENCE_SECONDS, source_address=(address, 0)
    )
    client._held = b""
    return client
