"""Openings of prose: the first word of each docstring, comment, paragraph, list item and cell."""

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

# A clause where the name of a thing or a verb should stand.
CLAUSE = re.compile(r"[*_\"'(]*(?:What|Whether|Of|Where|Who)\b(?![^.:?!]*\?)")
_RUST = re.compile(r"^(?P<code>.*?)(?<!:)//[/!]?(?P<text>.*)$")
_MARK = re.compile(r"(?:[-*+]|\d+\.|#+|>)\s+")


def clauses() -> list[str]:
    """`file:line: text` of every opening that is a clause."""
    readers = {".py": _python, ".pyi": _python, ".rs": _rust, ".md": _markdown}
    found = []
    for path in sorted(files()):
        if reader := readers.get(path.suffix):
            openings = reader(path.read_text())
            found += [f"{short(path)}:{n}: {text}" for n, text in openings if CLAUSE.match(text)]
    return found


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
    lines = re.sub(r"```.*?```", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    for n, line in _paragraphs(1, lines.splitlines()):
        if not line.startswith("|"):
            yield n, line
    for n, line in enumerate(lines.splitlines(), 1):
        if line.startswith("|"):
            yield from ((n, cell.strip()) for cell in line.strip("|").split("|"))
