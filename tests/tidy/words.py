"""Words that the glossary has replaced, as parts of names in the product."""

from __future__ import annotations

import io
import re
import tokenize
from typing import TYPE_CHECKING

from tests.tidy import rust
from tests.tidy.files import product, short

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPLACED = {
    *("books", "brief", "chore", "chores", "company", "door", "intake", "leader", "leaders"),
    *("spelling", "spellings", "stranger", "strangers", "survey", "told", "trail", "vitals"),
    *("widest",),
}
_PART = re.compile(r"[A-Z]?[a-z]+")


def replaced() -> list[str]:
    """`file: name` of each name that has such a part."""
    found = []
    for path in [*product(".py"), *rust.compiled()]:
        parts = ((name, {part.lower() for part in _PART.findall(name)}) for name in _names(path))
        found += [f"{short(path)}: {name}" for name, words in parts if words & REPLACED]
    return found


def _names(path: Path) -> Iterator[str]:
    if path.suffix == ".rs":
        yield from re.findall(r"\b[A-Za-z_]\w*", rust.code(path))
    else:
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            if token.type == tokenize.NAME:
                yield token.string
