"""Runs commands that kill themselves before a given line of the code of some modules."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from fleetcast.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINES_BETWEEN_KILLS = 1 if os.environ.get("FAULTS") == "full" else 12


def killed_before_each_line(
    data: Path, before: Path, modules: list[str], commands: list[list[str]]
) -> Iterator[None]:
    """Yields after each kill, until the commands end alive.

    Each time `data` begins as it is now; `before` is where it is kept meanwhile.
    """
    shutil.copytree(data, before)
    line = 1
    while True:
        shutil.rmtree(data)
        shutil.copytree(before, data)
        if not is_killed_before(line, modules, commands):
            return
        yield
        line += LINES_BETWEEN_KILLS


def is_killed_before(line: int, modules: list[str], commands: list[list[str]]) -> bool:
    """Runs commands up to a line of the modules. Returns false if they ended before it."""
    work = json.dumps([line, modules, commands])
    killed = subprocess.run([sys.executable, __file__, work], check=False)
    assert killed.returncode in {0, -signal.SIGKILL}
    return killed.returncode != 0


def main(last: int, modules: list[str], commands: list[list[str]]) -> int:
    files = {importlib.import_module(name).__file__ for name in modules}
    lines = 0

    def trace(frame, event, _argument):
        nonlocal lines
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            lines += 1
            if lines == last:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    return max(run(command) for command in commands)


if __name__ == "__main__":
    sys.exit(main(*json.loads(sys.argv[1])))
