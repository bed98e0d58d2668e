"""The log as text on a terminal.

All processes write lines of JSON to descriptor 2. If descriptor 2 is a terminal, the service
replaces it by a pipe, and this process writes each line of the pipe as text. This process ends when
no process can write to the pipe any more, so the last lines of a killed supervisor are shown too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_STDERR = 2
_RED, _YELLOW, _NO_COLOR = "\x1b[31m", "\x1b[33m", "\x1b[0m"
_COLORS = {"warning": _YELLOW, "error": _RED, "critical": _RED}
_END_SECONDS = 5.0  # a program that the service has started may hold the pipe for longer


@contextmanager
def text_on_terminal() -> Iterator[None]:
    """Shows the log as text until the end of the block, if descriptor 2 is a terminal."""
    if not os.isatty(_STDERR):
        yield
        return
    # A process group keeps Ctrl-C and Ctrl-Z away: no process of the service may wait for the pipe.
    child = subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, process_group=0
    )
    assert child.stdin is not None  # noqa: S101 - it is a pipe
    terminal = os.dup(_STDERR)
    os.dup2(child.stdin.fileno(), _STDERR)
    child.stdin.close()
    try:
        yield
    finally:
        os.dup2(terminal, _STDERR)
        os.close(terminal)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_END_SECONDS)


def as_text(line: str, *, colors: bool) -> str:
    """Returns a line of the log as text; a line that is no JSON stays as it is.

    Control characters are shown as escapes, so that a value cannot command the terminal.
    Example: `2026-01-02T03:04:05Z [info] compacted tenant=acme blocks=3`.
    """
    values = None
    with suppress(ValueError):
        values = json.loads(line)
    if not isinstance(values, dict):
        return _printable(line)
    time, level, event, exception = (
        _printable(str(values.pop(name, "")))
        for name in ("timestamp", "level", "event", "exception")
    )
    details = (
        f" {_printable(name)}={_printable(str(value))}"
        for name, value in values.items()
        if name != "logger" and value is not None
    )
    if colors:
        level = f"{_COLORS.get(level, '')}{level}{_NO_COLOR}"
    traceback = f"\n{exception}" if exception else ""
    return f"{time} [{level}] {event}{''.join(details)}{traceback}"


def _printable(text: str) -> str:
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode()
        for each in text
    )


def main() -> None:
    """Shows lines until the pipe ends."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # it may write while another program is in front
    colors = "NO_COLOR" not in os.environ
    for line in sys.stdin.buffer:
        text = line.decode(errors="backslashreplace").rstrip()
        sys.stderr.write(f"{as_text(text, colors=colors)}\n")


if __name__ == "__main__":
    main()
