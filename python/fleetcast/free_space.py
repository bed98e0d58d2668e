"""Room for a change on a file system."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PROBE_BYTES = 65_536  # LMDB needs some pages to commit anything


def check_room(folder: Path) -> None:
    """Raises `OSError` if nothing can be written into `folder`, as on a full disk."""
    with tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, _PROBE_BYTES)
