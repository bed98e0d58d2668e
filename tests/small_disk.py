"""A file system that is soon full."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mounts one in a new folder; the test is skipped where nobody may."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    try:
        mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("nobody may mount here")
    try:
        yield folder
    finally:
        # Lazily: what a failed test still holds open must not hide why it failed.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def enlarge(folder: Path, size: str) -> None:
    """Gives a mounted one more room."""
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)
