"""Findings of `fleetcast doctor` for the console, looked for at most every ten minutes.

The command runs as a process of its own: it opens stores that this process has open, and LMDB
allows no file to be open twice in a process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_AGE_SECONDS_MAX = 600.0
_PATIENCE_SECONDS = 60.0


class Findings:
    """The last findings about a data directory. Safe to share between threads."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._found: Sequence[Mapping[str, object]] | None = None
        self._begun_at: float | None = None

    def look(self) -> Sequence[Mapping[str, object]] | None:
        """Returns the last findings, without waiting, and begins to look again if they are old."""
        with self._lock:
            now = time.monotonic()
            if self._begun_at is None or now - self._begun_at > _AGE_SECONDS_MAX:
                self._begun_at = now
                threading.Thread(target=self._run, name="doctor", daemon=True).start()
            return self._found

    def _run(self) -> None:
        command = [sys.executable, "-m", "fleetcast", "doctor", "--json", "--data", str(self._root)]
        try:
            done = subprocess.run(  # noqa: S603 - our own program
                command, capture_output=True, timeout=_PATIENCE_SECONDS, check=False
            )
            found = json.loads(done.stdout)["checks"]
        except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
            found = [{"check": "doctor", "ok": False, "detail": str(error), "advice": None}]
        with self._lock:
            self._found = found
