"""Pieces of a text: whole lines, with about as many bytes as a good batch has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetcast.config.sections import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.transfer.opening import Readable

LINE_BYTES_MAX = 4 * Limits.body_bytes_max  # more than any record over HTTP has
PIECE_BYTES = 3 << 20  # fits the caches of a processor, in which the engine finds it


@dataclass
class Piece:
    """Some lines of a file, or the problem with the first line.

    The text is valid until the next piece is requested, which reuses its memory.
    """

    first: int
    """Number of the first line, from 1."""
    text: bytes
    end: int
    """Offset after the last line of the piece; the text may go on."""
    is_last: bool = False
    """True if the file ends with the text."""
    problem: str | None = None
    counted: int | None = None
    """Number of lines, if they have been counted."""
    whole: Piece | None = None
    """The piece that this piece was cut from and shares its end with."""

    @property
    def lines(self) -> int:
        """Number of lines of the piece."""
        if self.counted is None:
            open_line = self.end > 0 and self.text[self.end - 1] != 10  # noqa: PLR2004 - a line feed
            self.counted = self.text.count(b"\n", 0, self.end) + open_line
        return self.counted

    @property
    def last(self) -> int:
        """Number of the last line."""
        return self.first + self.lines - 1

    def shorten(self, end: int) -> None:
        """Ends the piece at offset `end` and leaves the rest to the next piece."""
        if self.whole is not None:
            self.whole.shorten(self.whole.end - (self.end - end))
        self.end, self.counted = end, None

    def until(self, line: int) -> Piece:
        """The lines up to `line`."""
        return self if line >= self.last else self._cut(line)[0]

    def after(self, line: int) -> Piece:
        """The lines after `line`."""
        return self if line < self.first else self._cut(line)[1]

    def _cut(self, line: int) -> tuple[Piece, Piece]:
        count = min(max(line - self.first + 1, 0), self.lines)
        at = 0
        for _ in range(count):
            at = self.text.find(b"\n", at) + 1 or len(self.text)
        before = Piece(self.first, self.text, at, problem=self.problem, counted=count)
        rest = Piece(
            self.first + count, self.text[at:], self.end - at, self.is_last, self.problem,
            self.lines - count, self.whole or self,
        )  # fmt: skip
        return before, rest


def pieces(file: Readable) -> Iterator[Piece]:
    """Yields the lines of `file` in order. The caller may shorten a piece."""
    first, text, size = 1, b"", PIECE_BYTES
    while text := _filled(file, text, size):
        is_last = len(text) < size
        end = len(text) if is_last else text.rfind(b"\n") + 1
        piece = Piece(first, text, end, is_last)
        if end:
            yield piece
            end = piece.end
        if not end and size == PIECE_BYTES:
            size = LINE_BYTES_MAX + 1  # room for the longest line and its end
            continue
        if not end and (end := text.find(b"\n") + 1):
            problem = f"has a text without an end within {LINE_BYTES_MAX} bytes"
            piece = Piece(first, text, end, is_last, problem)
            yield piece
        elif not end:
            piece = Piece(first, b"", 0, is_last, f"is longer than {LINE_BYTES_MAX} bytes", 1)
            yield piece
            text = _next_line(file)
        first += piece.lines
        size = PIECE_BYTES
        piece.text = b""
        text = _rest(file, text, end)


def _filled(file: Readable, text: bytes, size: int) -> bytes:
    """Returns `text` and the bytes after it: `size` bytes, or fewer at the end of the file."""
    parts = [text] if text else []
    size -= len(text)
    while size > 0:
        text = b""  # frees its memory for the next bytes
        text = file.read(size)
        if not text:
            break
        parts.append(text)
        size -= len(text)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _rest(file: Readable, text: bytes, end: int) -> bytes:
    """Returns the text from `end` on, or no text if the file returns it again."""
    left = len(text) - end
    return b"" if left == 0 or file.unread(left) else text[end:]


def _next_line(file: Readable) -> bytes:
    """Reads to the end of the line and returns the bytes after it."""
    while part := file.read(PIECE_BYTES):
        end = part.find(b"\n") + 1
        if end:
            return part[end:]
    return b""
