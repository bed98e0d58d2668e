"""Planes in a backup, and what they are made of."""

from __future__ import annotations

from typing import NamedTuple


class SavedFile(NamedTuple):
    """A file of a backup: its path in there, its length and the SHA-256 of its content."""

    name: str
    length: int
    sha256: bytes


class SavedPlane(NamedTuple):
    """A plane in a backup: its files and what it holds.

    `content` is a hash over everything that answers follow from: planes with the same one give the
    same answers.
    """

    files: tuple[SavedFile, ...]
    rows: int
    values: int
    content: bytes

    @property
    def length(self) -> int:
        """Bytes of all files."""
        return sum(file.length for file in self.files)


class SaveDone(NamedTuple):
    """A plane that was saved, and the bytes that were written and linked for it."""

    plane: SavedPlane
    bytes_written: int
    bytes_linked: int
