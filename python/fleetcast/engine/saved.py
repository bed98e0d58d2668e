"""Planes in a backup, with their files and counts."""

from __future__ import annotations

from typing import NamedTuple


class SavedFile(NamedTuple):
    """A file of a backup: its path in the backup, its length and the SHA-256 of its content."""

    name: str
    length: int
    sha256: bytes


class SavedPlane(NamedTuple):
    """A plane in a backup: its files, rows and values.

    `content` is a hash over everything that decides answers. Planes with equal hashes give equal
    answers.
    """

    files: tuple[SavedFile, ...]
    rows: int
    values: int
    content: bytes

    @property
    def length(self) -> int:
        """Returns the bytes of all files."""
        return sum(file.length for file in self.files)


class SaveDone(NamedTuple):
    """A plane that was saved, and the bytes that were written and linked for it."""

    plane: SavedPlane
    bytes_written: int
    bytes_linked: int
