"""The service under a service manager: its notices, and sockets that the manager has opened.

The test is the manager. The protocols are sd_notify(3) and sd_listen_fds(3).
"""

import contextlib
import http.client
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fleetcast.errors import OperatorError
from fleetcast.supervisor.inherited_sockets import take_inherited
from tests.supervisor.conftest import with_sockets
from tests.waiting import PATIENCE_SECONDS, until

ALIVE = "WATCHDOG=1"
RELOADING = re.compile(r"RELOADING=1\nMONOTONIC_USEC=[0-9]+")
PATIENCE_USEC = "100000"


class Manager:
    """The socket on which a manager hears notices; a thread keeps its short queue empty."""

    def __init__(self, address, monkeypatch):
        self._address = address.replace("@", "\0", 1) if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self._address)
        self._heard = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        monkeypatch.setenv("NOTIFY_SOCKET", address)

    def _listen(self):
        while notice := self._socket.recv(4096):
            self._heard.put(notice.decode())

    def hear(self):
        """The next notice, which is waited for."""
        return self._heard.get(timeout=PATIENCE_SECONDS)

    def hear_until(self, is_awaited):
        """All notices up to the awaited one."""
        heard = [self.hear()]
        while not is_awaited(heard[-1]):
            heard.append(self.hear())
        return heard

    def close(self):
        with self._socket, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
            own.sendto(b"", self._address)
            self._thread.join()


@pytest.fixture(params=["file", "abstract"])
def address(request, tmp_path):
    return str(tmp_path / "notify") if request.param == "file" else f"@{uuid.uuid4()}"


@pytest.fixture
def manager(address, monkeypatch):
    with contextlib.closing(Manager(address, monkeypatch)) as made:
        yield made


def test_a_manager_hears_when_it_is_ready_reloads_and_stops(serve, manager):
    service = serve()
    assert service.ready["event"] == "ready"
    assert manager.hear() == "READY=1"
    for child in service.children():
        assert b"NOTIFY_SOCKET" not in Path(f"/proc/{child}/environ").read_bytes()
    service.process.send_signal(signal.SIGHUP)
    assert RELOADING.fullmatch(manager.hear())
    assert manager.hear() == "READY=1"
    service.process.terminate()
    assert manager.hear() == "STOPPING=1"


@pytest.mark.parametrize("address", ["file"], indirect=True)
def test_signs_of_life_stop_while_a_child_does_not_answer(serve, manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", PATIENCE_USEC)
    service = serve("--set", "service.watchdog_seconds=12", "--workers", "1")
    assert manager.hear_until(lambda notice: notice == ALIVE)

    def silence():
        return metric(service, 'fleetcast_child_silent{child="maintenance"}')

    def reload():
        service.process.send_signal(signal.SIGHUP)
        return manager.hear_until(RELOADING.fullmatch)

    def are_missed():
        """Looks between two reloads: the child may have been started again meanwhile."""
        os.kill(child_of(service, "maintenance"), signal.SIGSTOP)
        until(silence)
        reload()
        heard = reload()
        return silence() and heard

    assert ALIVE not in until(are_missed)
    assert manager.hear_until(lambda notice: notice == ALIVE)


@pytest.mark.parametrize("address", ["file"], indirect=True)
def test_signs_of_life_for_another_process_are_not_sent(serve, manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", PATIENCE_USEC)
    monkeypatch.setenv("WATCHDOG_PID", "1")
    service = serve()
    assert manager.hear() == "READY=1"
    service.process.send_signal(signal.SIGHUP)
    assert RELOADING.fullmatch(manager.hear())


def test_connections_wait_while_a_service_with_the_managers_sockets_restarts(serve):
    with (
        socket.create_server(("127.0.0.1", 0)) as http_socket,
        socket.create_server(("127.0.0.1", 0)) as admin_socket,
    ):
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in (http_socket, admin_socket)]
        options = ("--http", addresses[0], "--admin", addresses[1])
        service = serve(*options, sockets=[http_socket, admin_socket])
        shown = [urlsplit(service.ready[name]).netloc for name in ("http", "admin")]
        assert shown == addresses
        assert service.get("/health")[0] == 200
        assert metric(service, 'fleetcast_processes_ready{surface="http"}') == 2
        for child in service.children():
            assert b"LISTEN_" not in Path(f"/proc/{child}/environ").read_bytes()
        assert service.stop()[0] == 0
        waiting = http.client.HTTPConnection(addresses[0], timeout=PATIENCE_SECONDS)
        with contextlib.closing(waiting):
            waiting.request("GET", "/health")
            serve(*options, sockets=[http_socket, admin_socket])
            assert waiting.getresponse().status == 200


def test_sockets_for_another_process_are_not_taken(serve, monkeypatch):
    monkeypatch.setenv("LISTEN_PID", "1")
    monkeypatch.setenv("LISTEN_FDS", "1")
    assert serve().get("/health")[0] == 200


@pytest.mark.parametrize("count", ["", "two", "1.0", "9" * 5_000])
def test_a_count_of_sockets_that_is_no_number_is_refused(count):
    environment = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": count}
    with pytest.raises(OperatorError, match=r"LISTEN_FDS: '.{0,40}' is no number of sockets"):
        take_inherited(environment)


def test_a_socket_that_no_listener_has_is_refused(data):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (line,) = refused(data, listener)
        assert f"no listener has the address 127.0.0.1:{listener.getsockname()[1]}" in line


def test_a_socket_that_does_not_listen_is_refused(data):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        (line,) = refused(data, datagrams)
    with socket.socket(socket.AF_UNIX) as local:
        assert refused(data, local) == [line]
    assert "descriptor 3 is no listening socket of TCP" in line


def refused(data, passed):
    """Lines of a start that fails because of its socket."""
    serve = [sys.executable, "-m", "fleetcast", "serve", "--data", str(data)]
    done = subprocess.run(
        [*with_sockets([passed]), *serve, "--http", "127.0.0.1:0", "--grpc", "off"],
        pass_fds=[passed.fileno()],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.splitlines()


def child_of(service, name):
    """The pid of a child, which is waited for: it may be about to start again."""

    def look():
        for pid in service.children():
            with contextlib.suppress(OSError):
                if f"supervisor.{name}_child" in Path(f"/proc/{pid}/cmdline").read_text():
                    return pid
        return None

    return until(look)


def metric(service, series):
    wire = http.client.HTTPConnection(
        urlsplit(service.ready["admin"]).netloc, timeout=PATIENCE_SECONDS
    )
    with contextlib.closing(wire):
        wire.request("GET", "/metrics")
        text = wire.getresponse().read().decode()
    found = re.search(rf"^{re.escape(series)} ([0-9.]+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0
