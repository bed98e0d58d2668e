"""Programs of others: `make integrations` installs them, elsewhere their tests are left out."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess

import pytest

from tests.service.service import children
from tests.tidy.files import ROOT
from tests.waiting import PATIENCE_SECONDS, until

MADE = ROOT / "target" / "integrations"
HERE = os.environ.get("INTEGRATIONS") == "1"
# Debian's servers are where only root looks for programs.
PATHS = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:{MADE}"


def found(name: str) -> str | None:
    """The path of a program; its name in capitals in the environment may say it."""
    return os.environ.get(name.upper().replace("-", "_")) or shutil.which(name, path=PATHS)


def needs(*names: str) -> pytest.MarkDecorator:
    """Leaves a test out where a program is missing, or where nobody asked for these."""
    missing = [name for name in names if found(name) is None]
    reason = f"no {', '.join(missing)} here" if missing else "make integrations runs it"
    return pytest.mark.skipif(bool(missing) or not HERE, reason=reason)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Program:
    """A process of the test, started again on demand; its output is appended to `log`."""

    def __init__(self, command, log, *, port=None, **options):
        self.command, self.log, self.port, self.options = command, log, port, options
        self.process = None

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, **self.options)
        if self.port is not None:
            until(lambda: answers(self.port) or self._fail_if_ended())
        return self

    def _fail_if_ended(self):
        assert self.process.poll() is None, self.text()[-3000:]

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def stop_child(self) -> int:
        """Ends the process that this one watches; returns the status of both."""
        (child,) = children(self.process.pid)
        os.kill(child, signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)
