"""The log on a terminal: text in lines, in which no value commands the terminal."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from fleetcast.supervisor.terminal_child import as_text
from tests.supervisor.conftest import OPTIONS
from tests.waiting import PATIENCE_SECONDS, is_readable


class Terminal:
    """A terminal, of which the test is the screen."""

    def __init__(self):
        self._screen, self.descriptor = pty.openpty()
        self.text = ""

    def until(self, text):
        """Reads up to a text, or to the end if there is no more writer."""
        while text not in self.text:
            assert is_readable(self._screen)
            try:
                self.text += os.read(self._screen, 65_536).decode()
            except OSError:  # the last writer has closed it
                break
        return self.text

    def close(self):
        os.close(self._screen)


@pytest.fixture
def terminal():
    made = Terminal()
    yield made
    made.close()


def test_a_service_on_a_terminal_logs_text(data, terminal):
    serve = [sys.executable, "-m", "fleetcast", "serve", "--data", data, *OPTIONS]
    process = subprocess.Popen(
        serve,
        stdout=subprocess.PIPE,
        stderr=terminal.descriptor,
        env={**os.environ, "NO_COLOR": "1"},
        text=True,
    )
    os.close(terminal.descriptor)
    with process:
        ready = process.stdout.readline()
        assert json.loads(ready)["event"] == "ready"
        process.send_signal(signal.SIGHUP)
        assert "settings unchanged" in terminal.until("settings unchanged")
        process.terminate()
        process.wait(PATIENCE_SECONDS)
    assert process.returncode == 0
    whole = terminal.until("no such text")
    (line,) = [line for line in whole.splitlines() if "settings unchanged" in line]
    assert "info" in line
    assert "process=supervisor" in line
    assert "{" not in whole


def test_an_error_of_the_start_is_one_line_on_the_terminal(data, terminal):
    serve = [sys.executable, "-m", "fleetcast", "serve", "--data", data, "--http", "x"]
    process = subprocess.Popen(serve, stderr=terminal.descriptor)
    os.close(terminal.descriptor)
    assert process.wait(PATIENCE_SECONDS) == 1
    (line,) = terminal.until("no such text").splitlines()
    assert line.startswith("fleetcast: --http: http.address")


def test_a_value_of_a_line_does_not_command_the_terminal():
    hostile = json.dumps({"event": "x\x1b[2J", "level": "info", "tenant": "\x9b31m", "n": 1})
    shown = as_text(hostile, colors=False)
    assert shown.isprintable()
    assert r"\x1b[2J" in shown
    assert "n=1" in shown
    for line in ("no JSON \x1b[2J", "17", "[]"):
        assert as_text(line, colors=False) == line.replace("\x1b", r"\x1b")
    traced = json.dumps({"event": "e", "exception": "Traceback\n  File"})
    assert "Traceback\n  File" in as_text(traced, colors=False)
