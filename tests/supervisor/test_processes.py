import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fleetcast.composition.shared_settings import SharedSettings
from fleetcast.config import Settings
from fleetcast.errors import OperatorError
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.lock import exclusive
from fleetcast.metrics import make_shared_memory
from fleetcast.supervisor.child_configuration import ChildConfiguration
from fleetcast.supervisor.models_child import provide_models_apart
from fleetcast.supervisor.process import backoff_seconds
from tests.waiting import PATIENCE_SECONDS, until, until_refused

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


@pytest.fixture
def heir():
    """Makes this process the parent of orphans below it, as the first one of a container is.

    Their groups have a parent in their session then, so that the kernel does not wake stopped ones.
    """

    def heir():
        assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0

    yield heir
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def test_it_says_where_it_is_ready_and_stops_when_told(serve, wait_for_end):
    service = serve()
    assert service.ready["event"] == "ready"
    assert list(service.ready) == ["event", "http", "grpc", "grpc_ca", "admin"]
    assert service.get("/health") == (200, {"status": "ok", "checks": {}})
    children = service.children()
    # Two arbiters, two HTTP workers, gRPC, maintenance, the private listener.
    assert len(children) == 7
    status, out, _ = service.stop()
    assert (status, out) == (0, "")
    assert wait_for_end(children, 0)


def test_the_supervisor_keeps_no_library_of_forecasts(serve, call):
    """They took 40 MB of the process that released the first models, for as long as it ran."""
    service = serve()
    assert call("forecast", "release", "list", "--family", "snr")
    assert "onnxruntime" not in Path(f"/proc/{service.process.pid}/maps").read_text()


def test_the_supervisor_maps_no_file_of_the_stores(serve, call, data):  # B23
    """A process that reads a mapped file as it is cut ends, by SIGBUS. This one is the service."""
    service = serve()
    call("tenant", "create", "acme")
    key = call("key", "create", "acme", "--scope", "topology:read")["key"]
    assert service.get("/topology", key)[0] == 200
    for state in ("off", "on"):  # after the second line, a whole round has followed the request
        call("tenant", "set", "acme", "--live-ingest", state)
        until(lambda: "tenant changed" in service.line())
    assert str(data) not in Path(f"/proc/{service.process.pid}/maps").read_text()


def test_first_models_that_cannot_be_released_say_why(tmp_path):
    settings = SharedSettings.create(Settings())
    configuration = ChildConfiguration(
        directory=DataDirectory(tmp_path / "gone"),
        master_key=bytes(32),
        counters_fd=make_shared_memory(),
        settings_fd=settings.descriptor,
        run="run",
    )
    with pytest.raises(OperatorError, match=r"first models cannot be released: .*No such file"):
        provide_models_apart(configuration)


def test_no_process_leaves_a_core_file_which_would_hold_the_master_key(serve):
    service = serve()
    for pid in [service.process.pid, *service.children()]:
        lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith("Max core file size"))
        # core(5): shorter than any file, and the kernel starts no program that would get one.
        assert {int(word) for word in line.split()[4:6]} <= {0, 1}


def test_signals_that_are_not_a_childs_end_and_replace_none(serve):
    """SIGHUP ended gRPC and maintenance, and had gunicorn replace its workers."""
    service = serve("--workers", "1")
    before = kinds(service)
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU):
        for pid in before.values():
            os.kill(pid, number)
    service.process.send_signal(signal.SIGHUP)
    # Each child has served its signals before it stops: one that had ended would be in the log.
    assert service.get("/health")[0] == 200
    assert kinds(service) == before
    _, _, log = service.stop()
    assert "child ended" not in log


def test_any_number_of_stops_is_one_stop(serve):
    service = serve()
    while service.process.poll() is None:
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.01)
    assert service.process.returncode == 0


def test_starting_takes_nothing_from_a_clients_rate_limit(serve):  # B2, B6
    service = serve("--set", "limits.requests_per_minute=2")
    assert [service.get("/health")[0] for _ in range(6)] == [200, 200, 429, 429, 429, 429]


def test_a_second_serve_is_refused(serve, data):
    serve()
    second = subprocess.run(
        [sys.executable, "-m", "fleetcast", "serve", "--data", data, "--http", "127.0.0.1:0"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr.count("\n") == 1
    assert "served already" in second.stderr


def test_a_port_in_use_is_one_clear_line(serve, tmp_path, fail):
    port = serve().ready["http"].rsplit(":", 1)[1]
    other = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "fleetcast", "init", "--data", other], check=True)
    (line,) = fail("serve", "--data", other, "--http", f"127.0.0.1:{port}")
    assert "cannot listen" in line


def kinds(service):
    """Processes by what they run, and whether the supervisor has started them itself."""
    found = {}
    for pid in service.children():
        with contextlib.suppress(FileNotFoundError, IndexError):  # it has ended meanwhile
            module = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2].decode()
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            found[module, int(parent) == service.process.pid] = pid
    return found


def test_a_child_that_lives_and_does_not_work_is_replaced(serve, wait_for_end):
    """B11: the process of gRPC lived for good after its loop had ended, and all was called well.

    A worker of HTTP that is stopped is left to its arbiter, which replaces it in thirty seconds.
    """
    service = serve("--workers", "1", "--set", "service.watchdog_seconds=6")
    children = [kind for kind in kinds(service) if kind[1]]
    assert len(children) == 4
    for kind in children:
        victim = until(lambda kind=kind: kinds(service).get(kind))
        os.kill(victim, signal.SIGSTOP)
        assert wait_for_end([victim])
        until(lambda kind=kind: kind in kinds(service))
        until(lambda: service.get("/health")[0] == 200)
    _, _, log = service.stop()
    assert log.count("child does not work and is killed") >= len(children)


def test_what_dies_is_started_again(serve, wait_for_end):
    """Two arbiters with a worker each, gRPC, maintenance, one after the other."""
    service = serve("--workers", "1")
    before = kinds(service)
    assert len(before) == 6
    for kind in before:
        victim = kinds(service)[kind]
        # A worker whose arbiter is gone may still take a connection, and drop it.
        below = service.children(victim)
        os.kill(victim, signal.SIGKILL)
        assert wait_for_end([victim, *below])

        def is_replaced(kind=kind, victim=victim):
            now = kinds(service)
            return now.keys() == before.keys() and now[kind] != victim

        until(is_replaced)
        assert service.get("/health")[0] == 200


def test_a_child_that_cannot_be_started_is_started_later(serve):
    """The service goes on with its other children, and without descriptors for a new one."""
    service = serve("--grpc", "off")
    kind = "fleetcast.supervisor.maintenance_child", True
    supervisor, maintenance = service.process.pid, kinds(service)[kind]
    before = resource.prlimit(supervisor, resource.RLIMIT_NOFILE)
    resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (3, before[1]))
    os.kill(maintenance, signal.SIGKILL)
    until(lambda: "child not started" in service.line())
    assert service.get("/health")[0] == 200
    resource.prlimit(supervisor, resource.RLIMIT_NOFILE, before)
    until(lambda: kinds(service).get(kind, maintenance) != maintenance)


def test_a_child_that_never_starts_is_tried_for_ever():
    assert [backoff_seconds(failures) for failures in range(4)] == [0.1, 0.2, 0.4, 0.8]
    assert backoff_seconds(100_000) == 10.0


def test_children_end_when_the_supervisor_is_killed(serve, wait_for_end):
    service = serve()
    children = service.children()
    service.process.kill()
    service.process.wait()
    assert wait_for_end(children)
    assert serve().get("/health")[0] == 200


def test_children_that_are_stuck_end_as_well(serve, wait_for_end, heir):
    service = serve("--workers", "1", "--grpc", "off", "--admin", "off")
    arbiter, maintenance, worker = service.children()
    heir()
    os.kill(worker, signal.SIGSTOP)
    os.kill(maintenance, signal.SIGSTOP)
    service.process.kill()
    assert wait_for_end([arbiter, maintenance, worker])


def test_a_key_revoked_in_one_process_is_refused_in_all_at_once(serve, call):
    call("tenant", "create", "acme")
    created = call("key", "create", "acme", "--scope", "topology:read")
    service = serve("--set", "limits.requests_per_minute=0", "--set", "limits.lockout_failures=0")
    assert {service.get("/account/state", created["key"])[0] for _ in range(8)} == {200}
    call("key", "revoke", created["key_id"])
    assert {service.get("/account/state", created["key"])[0] for _ in range(8)} == {401}


def test_logs_are_json_and_hold_no_secret(serve, data, wait_for_end):
    service = serve()
    arbiter = service.children()[0]
    workers = service.children(arbiter)
    os.kill(arbiter, signal.SIGKILL)
    assert wait_for_end(workers)
    lines = [service.line()]
    while json.loads(lines[-1])["event"] != "child ended":
        lines.append(service.line())
    assert service.get("/health")[0] == 200
    _, _, rest = service.stop()
    lines += rest.splitlines()
    assert all(json.loads(line)["level"] for line in lines)
    assert (data / "master.key").read_text().strip() not in "".join(lines)


def test_only_a_crash_makes_the_next_start_wait_for_its_ports(tmp_path):
    lock = tmp_path / "lock"
    with pytest.raises(OperatorError), exclusive(lock):
        raise OperatorError("a port that is taken")
    with exclusive(lock) as held:
        assert not held.crashed
    with pytest.raises(OSError, match="dies"), exclusive(lock):
        raise OSError("a supervisor that dies leaves its children behind")
    with exclusive(lock) as held:
        assert held.crashed


def test_connections_are_refused_once_it_stops_though_requests_are_under_way(serve):
    """Clients waited for seconds at a listener that nobody accepted from any more."""
    service = serve()
    stopped = [pid for (module, _), pid in kinds(service).items() if "http" in module]
    assert stopped
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    service.process.terminate()
    until_refused(urlsplit(service.ready["http"]).netloc)
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    service.process.communicate(timeout=PATIENCE_SECONDS)
    assert service.process.returncode == 0
    _, _, log = service.stop()
    assert "child is killed" not in log


def test_a_second_stop_kills_what_is_left(serve):
    service = serve("--workers", "1")
    for (module, _), pid in kinds(service).items():
        if "http" in module:
            os.kill(pid, signal.SIGSTOP)
    service.process.terminate()
    until_refused(urlsplit(service.ready["http"]).netloc)  # the stop has begun
    service.process.terminate()
    service.process.communicate(timeout=PATIENCE_SECONDS)
    assert service.process.returncode == 0
    lines = [json.loads(line) for line in service.stop()[2].splitlines()]
    killed = {line["child"] for line in lines if line["event"] == "child is killed"}
    assert {"http", "grpc"} <= killed  # by its own time only the one that hangs


def test_bad_settings_stop_the_start_with_every_fault(fail):
    assert len(fail("serve", "--set", "a.b=1", "--http", "x", "--workers", "0")) == 3
