"""Keeps glibc from returning every large buffer to the kernel."""

from __future__ import annotations

import ctypes
import logging

_M_TRIM_THRESHOLD = -1  # <malloc.h>
_M_MMAP_THRESHOLD = -3
_MMAP_BYTES = 32 * 1_048_576  # the most glibc takes
_TRIM_BYTES = 64 * 1_048_576

logger = logging.getLogger(__name__)


def keep_large_buffers() -> None:
    """Raises glibc's mmap threshold to 32 MiB and its trim threshold to 64 MiB for this process.

    By default glibc maps and unmaps a body of several hundred KB for every request. That costs
    about 150 page faults each time: a third of the CPU of the whole HTTP path. Other C libraries
    are left as they are.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        logger.info("mallopt is not there: malloc keeps its defaults")
        return
    mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
