"""The program of `security.master_key_command`, which prints the master key."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import time
from contextlib import suppress
from signal import SIGKILL
from typing import IO, cast

from fleetcast.errors import OperatorError

_NAME = "security.master_key_command"
_SECONDS_MAX = 30.0
PRINTED_BYTES_MAX = 4_096
"""Most bytes that the program may print. A key in hexadecimal has 65 with its line end."""


def printed_by(command: str) -> str:
    """Returns the text that a program prints. Raises `OperatorError`, which does not quote it.

    The program runs without a shell and gets no input. It has 30 seconds until it ends.
    """
    until = time.monotonic() + _SECONDS_MAX
    try:
        with subprocess.Popen(  # noqa: S603 - the operator's own command, without a shell
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as program:
            try:
                content = _read(cast("IO[bytes]", program.stdout), until)
                status = program.wait(max(until - time.monotonic(), 0.0))
            finally:
                _end(program)
        text = content.decode("ascii")
    except subprocess.TimeoutExpired:
        message = f"{_NAME} took over {_SECONDS_MAX:.0f} seconds"
        raise OperatorError(message) from None
    except (OSError, ValueError, IndexError):
        message = f"{_NAME} cannot be run or does not print text"
        raise OperatorError(message) from None
    if status:
        message = f"{_NAME} ended with status {status}"
        raise OperatorError(message)
    return text


def _read(output: IO[bytes], until: float) -> bytes:
    """Reads until the program closes its output. Raises `OperatorError`, `TimeoutExpired`."""
    descriptor, content = output.fileno(), b""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while len(content) <= PRINTED_BYTES_MAX:
        if not poll.poll(max(until - time.monotonic(), 0.0) * 1_000):
            raise subprocess.TimeoutExpired(_NAME, _SECONDS_MAX)
        chunk = os.read(descriptor, PRINTED_BYTES_MAX + 1 - len(content))
        if not chunk:
            return content
        content += chunk
    message = f"{_NAME} prints over {PRINTED_BYTES_MAX} bytes: it should print one line, the key"
    raise OperatorError(message)


def _end(program: subprocess.Popen[bytes]) -> None:
    """Ends a program that still runs, with the programs that it started."""
    if program.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, SIGKILL)
