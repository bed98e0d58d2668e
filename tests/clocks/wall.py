"""A wall clock that a test sets, of itself or of programs that it starts.

The library of `shim.c` is preloaded into the programs: whatever asks the C library for the time is
told that of the file in `CLOCK_SHIM`.
"""

from __future__ import annotations

import mmap
import subprocess
from pathlib import Path

SECOND_NS = 1_000_000_000
DAY_SECONDS = 86_400
YEAR_SECONDS = 365 * DAY_SECONDS
ROLLOVER_SECONDS = 1_024 * 7 * DAY_SECONDS
"""GPS counts weeks up to here, and begins anew."""

_SOURCE = Path(__file__).with_name("shim.c")
_BYTES = 8


class WallClock:
    """The clock of the programs that get `environment`. `folder` is its own."""

    def __init__(self, folder: Path) -> None:
        library, file = folder / "shim.so", folder / "ahead"
        compiler = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library)]
        subprocess.run([*compiler, str(_SOURCE), "-ldl"], check=True)
        file.write_bytes(bytes(_BYTES))
        with file.open("r+b") as opened:
            self._ahead = mmap.mmap(opened.fileno(), _BYTES)
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_SHIM": str(file)}

    def set_ahead(self, seconds: int) -> None:
        """Sets the clock: so far ahead of the right time, or behind."""
        self._ahead[:] = (seconds * SECOND_NS).to_bytes(_BYTES, "little", signed=True)
