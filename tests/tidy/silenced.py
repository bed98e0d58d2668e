"""Comments that silence a checker, each of which says why, or has one above it that does."""

from __future__ import annotations

import io
import re
import tokenize
from typing import TYPE_CHECKING

from tests.tidy.files import files, short

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SILENCED = re.compile(
    r"# (?:noqa: (?P<codes>\w+(?:, \w+)*)|type: ignore\[(?P<kind>[\w, -]+)\])(?P<reason>.*)"
)


def without_reason() -> list[str]:
    """`file:line: comment` of each that gives none, neither has one of its codes in its file."""
    return [
        f"{short(path)}:{line}: {comment}"
        for path in sorted(files())
        if path.suffix in (".py", ".pyi")
        for line, comment in without_reason_of(path)
    ]


def without_reason_of(path: Path) -> Iterator[tuple[int, str]]:
    """Line and comment of those of one file."""
    explained: set[str] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        found = _SILENCED.match(token.string) if token.type == tokenize.COMMENT else None
        if found is None:
            continue
        codes = set((found["codes"] or found["kind"]).split(", "))
        if re.search(r"\w", found["reason"]):
            explained |= codes
        elif not codes <= explained:
            yield token.start[0], token.string
