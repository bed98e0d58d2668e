"""English: words in comments, docstrings and pages, per 1,000 words.

The ranges are those of redb, pcodec, lsm-tree and starlette. A count that is out of its range shows
where sentences are hard to read: mend the sentences, not the words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.tidy.files import ROOT, files, product
from tests.tidy.prose import without_code

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Name -> pattern, least and most per 1,000 words.
RANGES = {
    "where": (r"\bwhere\b", 0, 3.0),
    "if, when": (r"\b(?:if|when)\b", 5.5, 99),
    "nobody, nothing": (r"\b(?:nobody|nothing)\b", 0, 1.2),
    "whoever, whatever": (r"\b(?:whoever|whatever|whichever)\b", 0, 0.3),
    "those": (r"\bthose\b", 0, 0.8),
    "one that, one who": (r"\bones? (?:that|who|whose)\b", 0, 0.3),
    "anew, meanwhile, beside": (r"\b(?:anew|meanwhile|beside)\b", 0, 0.3),
    "example": (r"e\.g\.|\bexamples?\b|\bfor instance\b", 0.5, 99),
}


def out_of_range() -> list[str]:
    """Each count that is out of its range, such as `Rust: where 3.4`."""
    found = []
    for area, text in _areas():
        words = len(re.findall(r"[A-Za-z']+", text))
        for name, (pattern, least, most) in RANGES.items():
            count = 1_000 * len(re.findall(pattern, text, re.IGNORECASE)) / words
            if not least <= count <= most:
                found.append(f"{area}: {name} {count:.2f}")
    return found


def _areas() -> Iterator[tuple[str, str]]:
    rust = "\n".join(path.read_text() for path in product(".rs"))
    yield "Rust", " ".join(re.findall(r"^\s*//[/!]? ?(.*)$", rust, re.MULTILINE))
    python = "\n".join(path.read_text() for path in product(".py"))
    docstrings = re.findall(r'"""(.*?)"""', python, re.DOTALL)
    yield "Python", " ".join([*docstrings, *re.findall(r"(?:^|\s)# (.*)$", python, re.MULTILINE)])
    pages = (path.read_text() for path in files() if path.suffix == ".md" and not _is_record(path))
    yield "pages", "\n".join(line for page in pages for line in without_code(page))


def _is_record(path: Path) -> bool:
    """Returns true if a page records measurements of a day."""
    return ROOT / "docs" / "measurements" in path.parents
