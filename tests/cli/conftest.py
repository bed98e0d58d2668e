import contextlib
import http.client
import json
import os
import select
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from fleetcast.cli.main import run
from tests.waiting import PATIENCE_SECONDS

OPTIONS = ("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--admin", "127.0.0.1:0")


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data directory that `init` made, which commands take from the environment."""
    for name in [name for name in os.environ if name.startswith("FLEETCAST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FLEETCAST_DATA", str(tmp_path / "data"))
    assert run(["init"]) == 0
    return tmp_path / "data"


@pytest.fixture
def call(data, capsys):  # noqa: ARG001  commands find it in the environment
    """Runs a command and gives its JSON answer."""

    def call(*arguments, status=0):
        capsys.readouterr()
        assert run([*map(str, arguments), "--json"]) == status
        return json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def fail(data, capsys):  # noqa: ARG001  see call
    """Runs a command that fails and gives its lines on stderr."""

    def fail(*arguments, status=1):
        capsys.readouterr()
        assert run([*map(str, arguments)]) == status
        out, err = capsys.readouterr()
        assert out == ""
        assert "Traceback" not in err
        assert err.startswith("fleetcast: ")
        return err.splitlines()

    return fail


class Service:
    """A running `fleetcast serve`."""

    def __init__(self, data, *options):
        self.data = data
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fleetcast", "serve", "--data", data, *OPTIONS, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.ready = json.loads(self.process.stdout.readline() or "null")

    def children(self, pid=None):
        """Processes below the supervisor, parents first."""
        pid = pid or self.process.pid
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123
                mine = [int(text) for text in file.read().split()]
        except FileNotFoundError:  # it has ended meanwhile
            return []
        return mine + [each for child in mine for each in self.children(child)]

    def get(self, path, key=None):
        url = urlsplit(self.ready["http"])
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", path, headers={"x-api-key": key} if key else {})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def stop(self):
        self.process.terminate()
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, out, err


@pytest.fixture
def serve(data):
    started = []

    def serve(*options):
        service = Service(data, *options)
        started.append(service)
        return service

    yield serve
    for service in started:
        if service.process.poll() is None:
            service.stop()
        service.process.stdout.close()
        service.process.stderr.close()


@pytest.fixture
def wait_for_end():
    """Waits until all processes have ended; false where one lives on after `seconds`."""

    def wait_for_end(pids, seconds=PATIENCE_SECONDS):
        watched = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                watched.append(os.pidfd_open(pid))
        try:
            return all(select.select([each], [], [], seconds)[0] for each in watched)
        finally:
            for each in watched:
                os.close(each)

    return wait_for_end
