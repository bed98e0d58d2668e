"""F7: a batch goes out again by itself only where no server can have seen it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import grpc
import pytest

from fleetcast.client.transport import Channel, Verdict
from fleetcast.security.certificate import issue_certificate

CALL_SECONDS = 6.0
DYING = [sys.executable, "-m", "tests.client.dying_server"]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    issue_certificate(folder, bytes(32), ["127.0.0.1"])
    return folder


@pytest.fixture
def send(certificates):
    """Sends one batch on a channel of its own."""
    authority = (certificates / "ca.pem").read_bytes()

    def send(target, seconds=CALL_SECONDS):
        with closing(Channel(target, "key", authority, seconds)) as channel:
            return channel.send(b"batch")

    return send


@pytest.mark.parametrize("_try", range(5))
def test_a_server_that_ends_with_the_first_call_of_a_channel_may_have_stored_it(
    certificates, send, _try
):
    """The channel hears of its connection late, often only when that is gone again."""
    with subprocess.Popen([*DYING, certificates], stdout=subprocess.PIPE, text=True) as server:
        port = int(server.stdout.readline())
        outcome = send(f"127.0.0.1:{port}", seconds=60)
        assert server.stdout.read() == "taken\n"
    assert (outcome.verdict, outcome.status) == (Verdict.UNCERTAIN, "UNAVAILABLE")


@contextmanager
def listener(take):
    """The address of one who does `take` with each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run():
            while True:
                try:
                    take(listening.accept()[0])
                except OSError:  # it is closed
                    return

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield "127.0.0.1:{}".format(*listening.getsockname()[1:])
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def nobody():
    with socket.socket() as taken:  # and not listened on
        taken.bind(("127.0.0.1", 0))
        yield "127.0.0.1:{}".format(*taken.getsockname()[1:])


@contextmanager
def closed():
    with listener(socket.socket.close) as address:
        yield address


@contextmanager
def silent():
    held = []
    with listener(held.append) as address:
        yield address
    for wire in held:
        wire.close()


@contextmanager
def unknown():
    yield "nowhere.invalid:443"


@pytest.mark.parametrize("peer", [nobody, closed, silent, unknown])
def test_without_a_connection_nothing_was_sent(send, peer):
    with peer() as target:
        assert send(target).verdict is Verdict.AGAIN


class Refusing(grpc.GenericRpcHandler):
    """A service that refuses each call, and says what the call left behind."""

    def __init__(self, word):
        # The status of a call that may come again after 5 s.
        text = (
            "CA4SFXRlbGVtZXRyeV91bmF2YWlsYWJsZRowCih0eXBlLmdvb2dsZWFwaXMuY29tL2dvb2dsZS5ycGMu"
            "UmV0cnlJbmZvEgQKAggF"
        )
        self.trailers = [("grpc-status-details-bin", b64decode(text)), ("x-write-outcome", word)]

    def service(self, _details):
        return grpc.unary_unary_rpc_method_handler(self.refuse)

    def refuse(self, _request, context):
        context.set_trailing_metadata(self.trailers)
        context.abort(grpc.StatusCode.UNAVAILABLE, "telemetry_unavailable")


@pytest.mark.parametrize(
    ("word", "verdict"), [("none", Verdict.AGAIN), ("unknown", Verdict.UNCERTAIN)]
)
def test_o9_a_delay_alone_does_not_say_that_nothing_was_stored(certificates, send, word, verdict):
    pair = tuple((certificates / name).read_bytes() for name in ("server.key", "server.pem"))
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((Refusing(word),))
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    server.start()
    outcome = send(f"127.0.0.1:{port}", seconds=60)
    server.stop(None).wait()
    assert (outcome.verdict, outcome.retry_seconds) == (verdict, 5.0)
