"""L20 to L24, L26: the processes, their port, their certificate, their end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import grpc
import pytest

from tests.service.service import FLEETCAST
from tests.waiting import until_well

from .station import INGEST, NOT_SERVING, SECONDS, Station, until_serving


def fail_to_serve(data, *options):
    """The one line on stderr of a start that is refused."""
    off = ("--http", "127.0.0.1:0", "--admin", "off", "--data", str(data))
    done = subprocess.run(
        [*FLEETCAST, "serve", *off, *options],
        capture_output=True,
        check=False,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    return line


def test_the_ready_line_names_the_port_and_the_authority(own):
    service = own()
    assert service.ready["grpc_ca"] == str(own.data / "tls" / "ca.pem")
    assert service.ready["grpc"].startswith("127.0.0.1:")
    assert not service.ready["grpc"].endswith(":0")


def test_off_means_no_listener(own):
    ready = own("--grpc", "off").ready
    assert (ready["grpc"], ready["grpc_ca"]) == (None, None)


def test_no_plain_text(service):  # L24
    with grpc.insecure_channel(service.ready["grpc"]) as channel:
        with pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary(f"/{INGEST}/Health")(b"", timeout=SECONDS)
        assert raised.value.code() == grpc.StatusCode.UNAVAILABLE


def test_no_start_without_a_certificate(own):  # L24
    (own.data / "tls" / "server.key").unlink()
    assert "server.key" in fail_to_serve(own.data, "--grpc", "127.0.0.1:0")


def test_a_certificate_from_elsewhere(own):
    for name in ("server.pem", "server.key"):
        (own.data / "tls" / name).rename(own.data / name)
    service = own("--set", "grpc.certificate=server.pem", "--set", "grpc.private_key=server.key")
    assert service.ready["grpc_ca"] is None
    station = Station(service.ready | {"grpc_ca": own.data / "tls" / "ca.pem"})
    assert station.write(b"", own.key).status == "OK"
    station.close()


@pytest.mark.parametrize("shared", [False, True])
def test_a_port_that_somebody_listens_on(own, shared):  # L23
    """Nobody shares a port unasked, not even with one that would share."""
    with socket.socket() as other:
        if shared:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for processes in (1, 2):
            options = ("--grpc", f"127.0.0.1:{port}", "--set", f"grpc.processes={processes}")
            assert "cannot listen" in fail_to_serve(own.data, *options)


def test_nobody_can_steal_the_port(service):  # L23
    port = int(service.ready["grpc"].rsplit(":", 1)[1])
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with pytest.raises(OSError, match="in use"):
            thief.bind(("127.0.0.1", port))


def test_several_processes_share_the_port(own):  # L23
    service = own("--set", "grpc.processes=2")
    victims = grpc_processes(service)
    assert len(victims) == 2
    stations = [Station(service.ready, ("grpc.use_local_subchannel_pool", 1)) for _ in range(8)]
    assert {station.write(b"", own.key).status for station in stations} == {"OK"}
    for station in stations:
        station.close()


def grpc_processes(service):
    found = []
    for pid in service.processes():
        with Path(f"/proc/{pid}/cmdline").open("rb") as file:
            if b"fleetcast.supervisor.grpc_child" in file.read():
                found.append(pid)
    return found


def test_it_is_started_again_on_the_same_port(own):
    service = own()
    station = Station(service.ready)
    watch = station.watch("")
    until_serving(watch)
    (victim,) = grpc_processes(service)
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(grpc.RpcError):
        list(watch)
    # A call that the library still put on the dead connection is UNAVAILABLE: a station repeats it.
    until_well(lambda: station.write(b"", own.key, wait_for_ready=True))
    assert grpc_processes(service) != [victim]
    station.close()


def test_it_tells_watchers_before_it_ends(own):  # L22
    service = own()
    station = Station(service.ready)
    watch = station.watch("")
    until_serving(watch)
    assert service.stop() == 0
    assert list(watch)[-1] == NOT_SERVING
    assert station.write(b"", own.key).status == "UNAVAILABLE"
    station.close()


def test_watches_that_are_cancelled_at_any_moment_end_no_process(own):
    """The library's call may be gone before its handler has ended, which asked it for the client:
    whoever cancelled at such a moment ended the process, and needed no key for that.
    """
    service = own()
    before = service.processes()
    station = Station(service.ready)
    for number in range(100):
        watch = station.watch("")
        if number % 3:
            until_serving(watch)
        watch.cancel()
    assert station.write(b"", own.key).status == "OK"
    assert service.processes() == before
    station.close()


def test_calls_that_come_all_at_once_are_answered_and_not_cancelled(own):  # L19
    """The library cancels some beyond a thousand that wait: whose they are, it does not ask."""
    service = own()
    (process,) = grpc_processes(service)
    local = ("grpc.use_local_subchannel_pool", 1)
    stations = [Station(service.ready, local) for _ in range(7)]
    assert {station.write(b"", own.key).status for station in stations} == {"OK"}
    os.kill(process, signal.SIGSTOP)
    calls = [
        station.channel.unary_unary(f"/{INGEST}/Write").future(
            b"", metadata=[("x-api-key", own.key)], timeout=SECONDS
        )
        for station in stations
        for _ in range(250)
    ]
    os.kill(process, signal.SIGCONT)
    assert {call.code().name for call in calls} <= {"OK", "RESOURCE_EXHAUSTED"}
    for station in stations:
        station.close()


def test_l26_where_reflection_is_off_there_is_no_such_service(own):
    station = Station(own("--set", "service.environment=production").ready)
    method = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
    call = station.channel.stream_stream(method)(iter([]), timeout=SECONDS)
    assert list_or_status(call) == "UNIMPLEMENTED"
    station.close()


def list_or_status(call):
    try:
        return list(call)
    except grpc.RpcError as error:
        return error.code().name


def test_logs_are_json_and_hold_no_key(own):
    service = own()
    station = Station(service.ready)
    station.write(b"\xff", own.key)
    station.write(b"", own.key + "x")
    station.close()
    service.stop()
    text = (own.data / "serve.log").read_text()
    assert own.key not in text
    assert all(json.loads(line) for line in text.splitlines())
