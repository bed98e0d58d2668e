"""Runs `fleetcast tenant rekey` and `compact`, and kills itself before a line of their code."""

from __future__ import annotations

import os
import signal
import sys

from fleetcast.cli import compact, tenant
from fleetcast.cli.main import run
from fleetcast.engine import planes
from fleetcast.installation import rekeying

FILES = {module.__file__ for module in (compact, planes, rekeying, tenant)}


def main(last: int) -> int:
    lines = 0

    def trace(frame, event, _argument):
        nonlocal lines
        if frame.f_code.co_filename not in FILES:
            return None
        if event == "line":
            lines += 1
            if lines == last:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    return run(["tenant", "rekey", "acme"]) or run(["compact", "acme"])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
