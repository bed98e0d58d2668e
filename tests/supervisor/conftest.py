import contextlib
import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.conftest import call, data, fail  # noqa: F401 - fixtures
from tests.waiting import PATIENCE_SECONDS, is_readable, until

OPTIONS = ("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--admin", "127.0.0.1:0")


# A service manager runs this between its fork and the program.
PASS_SOCKETS = """
import fcntl, os, sys
count = int(sys.argv[1])
high = [fcntl.fcntl(int(text), fcntl.F_DUPFD, 100) for text in sys.argv[2:2 + count]]
for number, descriptor in enumerate(high, 3):
    os.dup2(descriptor, number)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(count), "LISTEN_FDNAMES": "x"}
os.execv(sys.argv[2 + count], sys.argv[2 + count:])
"""


def with_sockets(sockets):
    """The beginning of a command that gets sockets as systemd passes them."""
    descriptors = [str(each.fileno()) for each in sockets]
    passing = [sys.executable, "-c", PASS_SOCKETS, str(len(sockets)), *descriptors]
    return passing if sockets else []


class Service:
    """A running `fleetcast serve`. Its log is a file: a full pipe would stop its processes."""

    def __init__(self, folder, *options, sockets=()):
        log = folder.with_name("serve.log")
        serve = [sys.executable, "-m", "fleetcast", "serve", "--data", folder, *OPTIONS, *options]
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [*with_sockets(sockets), *serve],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                pass_fds=[each.fileno() for each in sockets],
                text=True,
            )
        self._log = log.open()
        self._line = ""
        self.ready = json.loads(self.process.stdout.readline() or "null")

    def line(self):
        """The next line of the log, which is waited for."""

        def is_whole():
            self._line += self._log.readline()
            return self._line.endswith("\n")

        until(is_whole)
        line, self._line = self._line, ""
        return line

    def children(self, pid=None):
        """Processes below the supervisor, parents first."""
        pid = pid or self.process.pid
        try:
            with Path(f"/proc/{pid}/task/{pid}/children").open() as file:
                found = [int(text) for text in file.read().split()]
        except OSError:  # it has ended meanwhile
            return []
        return found + [each for child in found for each in self.children(child)]

    def get(self, path, key=None):
        address = urlsplit(self.ready["http"]).netloc
        connection = http.client.HTTPConnection(address, timeout=PATIENCE_SECONDS)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"x-api-key": key} if key else {})
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    def stop(self):
        """Exit code, output, and the lines of the log that were not read."""
        self.process.terminate()
        out, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, out, self._line + self._log.read()

    def close(self):
        if self.process.poll() is None:
            self.stop()
        self.process.stdout.close()
        self._log.close()


@pytest.fixture
def serve(data):  # noqa: F811 - a fixture, see above
    with contextlib.ExitStack() as stack:
        yield lambda *options, **given: stack.enter_context(
            contextlib.closing(Service(data, *options, **given))
        )


@pytest.fixture
def wait_for_end():
    """Waits until all processes have ended; false where one lives on after `seconds`."""

    def wait_for_end(pids, seconds=PATIENCE_SECONDS):
        watched = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                watched.append(os.pidfd_open(pid))
        try:
            return all(is_readable(process, seconds) for process in watched)
        finally:
            for process in watched:
                os.close(process)

    return wait_for_end
