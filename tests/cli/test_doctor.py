"""`fleetcast doctor`: what is wrong is found, alone, and says what to do."""

import contextlib
import ctypes
import json
import os
import resource
import shutil
import tempfile
import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

from fleetcast.cli.main import run
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.lock import exclusive
from fleetcast.installation.opening import opened
from fleetcast.security import certificate

RECORDS = (
    b'[{"measurement": "link", "time": "2026-01-01T00:00:00Z", "tags": {"entity_id": "a"},'
    b' "fields": {"snr_db": 1.5}}]'
)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that is set by a time service, and the means to take it away."""
    state = SimpleNamespace(value=0)
    libc = SimpleNamespace(adjtimex=lambda _buffer: state.value)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_arguments, **_options: libc)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, 20_480))
    return state


@pytest.fixture(autouse=True)
def disk(monkeypatch):
    """A disk that is half empty, so that no finding is about the disk of the machine."""
    told = SimpleNamespace(
        f_bavail=1 << 39, f_frsize=1, f_blocks=1 << 40, f_files=10**7, f_favail=10**6, f_flag=0
    )
    monkeypatch.setattr(os, "statvfs", lambda _path: told)
    return told


@pytest.fixture
def doctor(call, capsys):
    """Findings that are not good, by check; the exit status follows from them."""
    call("tenant", "create", "acme")

    def doctor():
        capsys.readouterr()
        status = run(["doctor", "--json"])
        document = json.loads(capsys.readouterr().out)
        assert document["ok"] == (status == 0) == all(each["ok"] for each in document["checks"])
        for each in document["checks"]:
            assert set(each) == {"check", "ok", "detail", "advice"}
            assert each["advice"] or each["ok"]
        return {each["check"]: each for each in document["checks"] if each["advice"]}

    return doctor


def failures(findings):
    return {check for check, each in findings.items() if not each["ok"]}


def test_a_sound_installation(doctor, capsys):
    assert doctor() == {}
    capsys.readouterr()
    assert run(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("ok    ") for line in lines)
    assert {line.split(": ")[0].removeprefix("ok    ") for line in lines} == {
        *("settings", "versions", "service", "descriptors", "clock", "data directory"),
        *("file modes", "disk space", "file system", "master key file", "gRPC certificate"),
        *("control store", "tenant acme"),
    }


def test_what_is_wrong_says_what_to_do(doctor, data, capsys):
    (data / "master.key").chmod(0o644)
    (data / "audit.log").chmod(0o604)
    (data / "tls" / "server.pem").unlink()
    found = doctor()
    assert failures(found) == {"master key file", "gRPC certificate", "file modes"}
    assert found["master key file"]["advice"] == f"chmod 600 {data / 'master.key'}"
    assert str(data / "audit.log") in found["file modes"]["detail"]
    assert found["file modes"]["advice"] == f"chmod -R go= {data}"
    capsys.readouterr()
    assert run(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "FAIL  file modes" in out
    assert f"      -> chmod -R go= {data}" in out


def test_a_directory_that_others_may_enter(doctor, data):
    data.chmod(0o750)
    assert doctor()["data directory"]["advice"] == f"chmod 700 {data}"


def test_files_of_another_user(doctor, data):
    if os.geteuid():
        pytest.skip("only root can give files away")
    os.chown(data / "audit.log", 1234, 1234)
    found = doctor()
    assert failures(found) == {"file owners"}
    assert str(data / "audit.log") in found["file owners"]["detail"]


def test_a_certificate_that_ends(doctor, call, monkeypatch):
    monkeypatch.setattr(certificate, "_VALID", timedelta(days=29))
    call("tls", "renew")
    found = doctor()
    assert (failures(found), set(found)) == (set(), {"gRPC certificate"})
    assert found["gRPC certificate"]["advice"] == "fleetcast tls renew"
    monkeypatch.setattr(certificate, "_VALID", timedelta(seconds=-1))
    call("tls", "renew")
    assert "expired" in doctor()["gRPC certificate"]["detail"]
    monkeypatch.undo()


def test_a_key_that_is_not_the_certificates(doctor, call, data):
    key = (data / "tls" / "server.key").read_bytes()
    call("tls", "renew")
    (data / "tls" / "server.key").write_bytes(key)
    assert failures(doctor()) == {"gRPC certificate"}


def test_names_of_other_protocols(doctor, data, capsys):
    names = data / "adapters.toml"
    names.write_text('[[map]]\nfrom = "cpu"\nto = "telemetry"\n')
    names.chmod(0o600)
    assert doctor() == {}
    capsys.readouterr()
    run(["doctor"])
    assert "ok    adapters.toml: its tables are well formed" in capsys.readouterr().out
    names.write_text("[[map")
    found = doctor()
    assert failures(found) == {"adapters.toml"}
    assert str(names) in found["adapters.toml"]["detail"]
    assert "correct it" in found["adapters.toml"]["advice"]


@pytest.mark.parametrize(
    ("free", "files", "ok"), [(1 << 27, 10**6, False), (1 << 32, 9, False), (1 << 32, 10**6, True)]
)
def test_a_disk_that_fills(doctor, disk, free, files, ok):
    disk.f_bavail, disk.f_favail = free, files
    found = doctor()
    assert set(found) == {"disk space"}
    assert found["disk space"]["ok"] is ok
    assert "retention" in found["disk space"]["advice"]


def test_a_file_system_in_memory(capsys):
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        assert run(["init", "--data", str(folder / "data")]) == 0
        assert run(["doctor", "--data", str(folder / "data")]) == 0
        assert "warn  file system: tmpfs" in capsys.readouterr().out
    finally:
        shutil.rmtree(folder)


def test_few_descriptors_and_a_clock_that_nobody_sets(doctor, clock, monkeypatch):
    clock.value = 5
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, 4096))
    found = doctor()
    assert failures(found) == set()
    assert set(found) == {"descriptors", "clock"}
    assert "LimitNOFILE" in found["descriptors"]["advice"]


def test_a_clock_that_is_behind_the_records(doctor, monkeypatch):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 86_400)
    assert "clock against records" in failures(doctor())


def test_a_service_of_another_version_and_one_that_crashed(doctor, data):
    with exclusive(data / "serve.lock") as lock:
        lock.note({"version": "0.0.9"})
        assert doctor()["service"]["advice"] == "restart it"
    (data / "serve.lock").write_text("123\n")
    assert "without being stopped" in doctor()["service"]["detail"]


def test_a_master_key_that_is_not_the_one(doctor, data):
    (data / "master.key").write_text("ab" * 32)
    assert "put back" in doctor()["master key"]["advice"]
    (data / "master.key").unlink()
    assert failures(doctor()) == {"master key file", "master key"}


def test_a_plane_that_is_gone_and_one_that_nobody_has(doctor, call, data):
    account_id = call("tenant", "show", "acme")["account_id"]
    (data / "planes" / account_id).rename(data / "planes" / "stray")
    found = doctor()
    assert failures(found) == {"tenant acme"}
    assert "fleetcast verify acme" in found["tenant acme"]["advice"]
    assert "stray" in found["unused planes"]["detail"]


def test_settings_that_are_wrong_end_the_checks(doctor, data):
    (data / "fleetcast.toml").write_text("[http]\nworkers = 0\n")
    assert failures(doctor()) == {"settings"}
    (data / "fleetcast.toml").unlink()
    assert failures(doctor()) == {"data directory"}


def test_a_tenant_that_fell_silent_beside_one_that_did_not(doctor, call, data):
    """Its rows do not expire at first, and the writes of the other hid that."""
    call("tenant", "create", "silent", "--retention", "90d")
    call("tenant", "create", "endless")
    call("tenant", "set", "acme", "--retention", "90d")
    with opened(DataDirectory(data), {}) as installation:
        for name, days_ago in (("acme", 0), ("silent", 3), ("endless", 3)):
            tenant = installation.tenants.get(name)
            plane = installation.engine.plane(tenant.account_id, name)
            plane.write_json(RECORDS, now_ns=time.time_ns() - days_ago * 86_400 * 10**9)
    found = doctor()
    assert (failures(found), set(found)) == (set(), {"tenant silent"})
    detail = found["tenant silent"]["detail"]
    assert "3.0 days ahead of its newest write: its rows may not expire" in detail
    # The service that runs knows. It was not asked, and warned of for as long as it ran.
    held = 'fleetcast_tenant_expiry_held{tenant="silent"}'
    with serving(data, f"# HELP\n{held} 0\n"):
        assert doctor() == {}
    with serving(data, "# HELP\n"):
        assert doctor() == {}
    with serving(data, f"# HELP\n{held} 1\n"):
        assert "none of its rows expires" in doctor()["tenant silent"]["detail"]


def test_a_proxy_of_the_environment_is_not_asked_for_the_services_metrics(
    doctor, data, monkeypatch
):
    """It cannot reach this machine's loopback, and records that no read shows were hidden."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    shown = 'fleetcast_unreadable_records_total{tenant="acme",reason="no_entity"} 7\n'
    with serving(data, shown):
        assert "7 records" in doctor()["records of acme"]["detail"]


@contextlib.contextmanager
def serving(data, metrics):
    """A service that does nothing but answer for its metrics."""

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(metrics.encode())

        def log_message(self, *_of):
            pass

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as server,
        exclusive(data / "serve.lock") as lock,
    ):
        address = f"http://127.0.0.1:{server.server_address[1]}"
        lock.note({"version": version("fleetcast"), "admin": address})
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
