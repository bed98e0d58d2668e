"""`fleetcast status` beside a service: before it, while it runs, and after its end or crash."""

import json
import os
import signal
import threading
from datetime import UTC, datetime, timedelta

from fleetcast.cli.main import run
from fleetcast.installation.lock import exclusive, seen
from tests.waiting import PATIENCE_SECONDS


def test_a_directory_without_a_service(call, data, capsys):
    stopped = call("status", status=1)
    assert (stopped["running"], stopped["state"], stopped["crashed"]) == (False, "stopped", False)
    assert stopped["pid"] is stopped["since"] is stopped["http"] is stopped["admin"] is None
    assert run(["status"]) == 1
    assert capsys.readouterr().out == f"{data}: not running\n"


def test_a_service_that_runs_and_one_that_crashed(serve, call, capsys, wait_for_end):
    before = datetime.now(UTC) - timedelta(seconds=1)
    service = serve("--grpc", "off", "--set", "adapters.address=127.0.0.1:0")
    shown = call("status")
    assert (shown["running"], shown["state"]) == (True, "running")
    assert shown["pid"] == service.process.pid
    assert before <= datetime.fromisoformat(shown["since"]) <= datetime.now(UTC)
    listeners = {name: shown[name] for name in ("http", "grpc", "grpc_ca", "admin", "adapters")}
    assert listeners == {name: service.ready[name] for name in listeners}
    assert run(["status"]) == 0
    text = capsys.readouterr().out
    assert "running since" in text
    assert service.ready["http"] in text
    assert service.ready["adapters"] in text
    assert "grpc      off" in text
    children = service.children()
    os.kill(service.process.pid, signal.SIGKILL)
    service.process.wait()
    after = call("status", status=1)
    assert (after["state"], after["crashed"], after["pid"]) == ("stopped", True, None)
    assert wait_for_end(children)
    assert serve("--grpc", "off").stop()[0] == 0
    assert call("status", status=1)["crashed"] is False


def test_a_broken_settings_file_does_not_hide_the_service(data, call, fail):
    with exclusive(data / "serve.lock") as lock:
        lock.note({"state": "starting", "since": 1.0})
        (data / "fleetcast.toml").write_text("[nonsense")
        shown = call("status", status=1)
        assert (shown["state"], shown["pid"]) == ("starting", os.getpid())
    (data / "fleetcast.toml").unlink()
    assert "fleetcast init" in fail("status")[0]


def test_looking_keeps_nobody_from_starting(tmp_path, monkeypatch):
    """Looks hold the file for an instant, and a start is patient with them."""
    monkeypatch.setattr("fleetcast.installation.lock._PATIENCE_SECONDS", PATIENCE_SECONDS)
    path, done = tmp_path / "lock", threading.Event()
    path.touch()

    def look():
        while not done.is_set():
            seen(path)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for number in range(200):
            with exclusive(path) as lock:
                lock.note({"number": number})
                assert seen(path) == (True, os.getpid(), {"number": number})
    finally:
        done.set()
        thread.join()


def test_a_note_is_replaced_where_it_lies(tmp_path):
    with exclusive(tmp_path / "lock") as lock:
        lock.note({"long": "x" * 500})
        lock.note({"short": 1})
        lines = (tmp_path / "lock").read_text().splitlines()
        assert lines == [str(os.getpid()), json.dumps({"short": 1})]
    assert (tmp_path / "lock").read_bytes() == b""
