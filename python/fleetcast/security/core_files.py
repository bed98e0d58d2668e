"""Core files, which would hold the master key."""

from __future__ import annotations

import contextlib
import resource

_PIPED_NOWHERE_BYTES = 1


def leave_no_core() -> None:
    """Keeps this process and its children from writing core files, also into a program.

    A limit of one byte is shorter than any core file. By core(5) the kernel then skips a program
    that core files are piped to. A limit of 0 does not stop such a program. Tracing is not
    affected.
    """
    for limit in (_PIPED_NOWHERE_BYTES, 0):
        with contextlib.suppress(OSError, ValueError):  # above the hard limit, which is then 0
            resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
            return
