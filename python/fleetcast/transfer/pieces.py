"""Pieces of a text: whole lines, about as many bytes as make a good batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from fleetcast.config.sections import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.transfer.opening import Readable

LINE_BYTES_MAX = 4 * Limits.body_bytes_max  # more than any record over HTTP has
PIECE_BYTES = LINE_BYTES_MAX + 1  # room for the longest line and its end


class Piece(NamedTuple):
    """Some lines of a file, or the problem with the first of them."""

    first: int
    """Number of the first line, from 1."""
    lines: int
    text: bytes
    problem: str | None = None

    @property
    def last(self) -> int:
        """Number of the last line."""
        return self.first + self.lines - 1

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
        before = Piece(self.first, count, self.text[:at], self.problem)
        return before, Piece(self.first + count, self.lines - count, self.text[at:], self.problem)


class Quotes(Protocol):
    """Counts the quotes between two offsets of a text."""

    def __call__(self, text: bytes, start: int, end: int, /) -> int:
        """The count."""


def pieces(file: Readable, quotes: Quotes | None) -> Iterator[Piece]:
    """The lines of `file` in order; with `quotes` a line may go on within quotes."""
    first = 1
    rest = b""
    while text := rest + _filled(file, PIECE_BYTES - len(rest)):
        is_last = len(text) < PIECE_BYTES
        cut = len(text) if is_last else _cut(text, quotes)
        if cut:
            piece, rest = Piece(first, _lines(text, cut), text[:cut]), text[cut:]
        elif cut := text.find(b"\n") + 1:
            problem = f"opens quotes that are not closed within {LINE_BYTES_MAX} bytes"
            piece, rest = Piece(first, 1, text[:cut], problem), text[cut:]
        else:
            piece = Piece(first, 1, b"", f"is longer than {LINE_BYTES_MAX} bytes")
            rest = _next_line(file)
        yield piece
        first += piece.lines


def counted_in(text: bytes, start: int, end: int) -> int:
    """Quotes of CSV."""
    return text.count(b'"', start, end)


def counted_unescaped(text: bytes, start: int, end: int) -> int:
    """Quotes of line protocol, where a backslash takes their meaning."""
    return text.count(b'"', start, end) - text.count(b'\\"', start, end)


def _filled(file: Readable, size: int) -> bytes:
    """`size` bytes, fewer at the end of the file alone."""
    parts: list[bytes] = []
    while size:
        part = file.read(size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _cut(text: bytes, quotes: Quotes | None) -> int:
    """Offset behind the last line that ends outside of quotes, 0 where there is none."""
    cut = text.rfind(b"\n") + 1
    if quotes is None:
        return cut
    count = quotes(text, 0, cut)
    while count % 2:
        before = text.rfind(b"\n", 0, cut - 1) + 1
        count -= quotes(text, before, cut)
        cut = before
    return cut


def _lines(text: bytes, end: int) -> int:
    return text.count(b"\n", 0, end) + (text[end - 1] != 10)  # noqa: PLR2004  a line's end


def _next_line(file: Readable) -> bytes:
    """Reads on to the end of the line and gives what was read of the next one."""
    while part := file.read(PIECE_BYTES):
        end = part.find(b"\n") + 1
        if end:
            return part[end:]
    return b""
