"""Prose: openings of docstrings, comments, paragraphs, items and cells; width of pages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.tidy.files import files, short

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WIDTH = 100
CELL_LENGTH_MAX = 2 * WIDTH

# A clause where the name of a thing or a verb should stand.
CLAUSE = re.compile(r"[*_\"'(]*(?:What|Whether|Of|Where|Who)\b(?![^.:?!]*\?)")
_RUST = re.compile(r"^(?P<code>.*?)(?<!:)//[/!]?(?P<text>.*)$")
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"(?:[-*+]|\d+\.|#+|>)\s+")


def clauses() -> list[str]:
    """`file:line: text` of every opening that is a clause."""
    return [
        f"{short(path)}:{line}: {text}"
        for path in sorted(files())
        for line, text in clauses_of(path)
    ]


def clauses_of(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of the openings of one file that are clauses."""
    readers = {".py": _python, ".pyi": _python, ".rs": _rust, ".md": _markdown}
    if reader := readers.get(path.suffix):
        yield from (found for found in reader(path.read_text()) if CLAUSE.match(found[1]))


def _python(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(ast.Constant(str(prose))):
                yield from _paragraphs(node.lineno, prose.splitlines())
    comments = [
        (token.start[0], token.string.lstrip("#").strip(), token.line[: token.start[1]].strip())
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    yield from _blocks(comments)


def _rust(text: str) -> Iterator[tuple[int, str]]:
    lines = ((n, _RUST.match(line)) for n, line in enumerate(text.splitlines(), 1))
    yield from _blocks([(n, m["text"].strip(), m["code"].strip()) for n, m in lines if m])


def _blocks(comments: list[tuple[int, str, str]]) -> Iterator[tuple[int, str]]:
    """The openings of comments: of each paragraph of those that go on line after line."""
    for at, (line, text, code) in enumerate(comments):
        before = comments[at - 1] if at else None
        goes_on = before and before[0] == line - 1 and not code and before[1]
        if text and not goes_on:
            yield line, _MARK.sub("", text, count=1)


def _paragraphs(first: int, lines: list[str]) -> Iterator[tuple[int, str]]:
    for n, (before, line) in enumerate(pairwise(["", *lines])):
        text = line.strip()
        if text and (not before.strip() or _MARK.match(text)):
            yield first + n, _MARK.sub("", text, count=1)


def _markdown(text: str) -> Iterator[tuple[int, str]]:
    lines = without_code(text)
    yield from (opening for opening in _paragraphs(1, lines) if not opening[1].startswith("|"))
    for n, line in enumerate(lines, 1):
        yield from ((n, cell) for cell in _cells(line))


def without_code(text: str) -> list[str]:
    """The lines of a page; those of blocks of code are empty."""
    return _FENCED.sub(lambda found: "\n" * found[0].count("\n"), text).splitlines()


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


def too_wide(page: Path) -> Iterator[str]:
    """Lines of a page that are not wrapped, and cells of tables that take more than two."""
    for n, line in enumerate(without_code(page.read_text()), 1):
        if line.startswith("|"):
            wide = any(len(cell) > CELL_LENGTH_MAX for cell in _cells(line))
        else:
            wide = len(line) > WIDTH and len(_MARK.sub("", line.strip()).split()) > 1
        if wide:
            yield f"{short(page)}:{n}: {line}"
