"""Why a request is refused, and what to do: a table for pages, answers and the console.

`troubles.txt` has a row for error codes with the same cause: codes, cause and advice in Markdown.
Links are as of `docs`, because `tools/tables` copies the rows into `docs/trouble.md`.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")

TROUBLES = files("fleetcast.surface").joinpath("troubles.txt").read_text("utf-8")
"""All rows of the table."""


def _explanations() -> Iterator[tuple[str, str]]:
    for row in TROUBLES.splitlines():
        codes, cause, advice = row.strip("| ").split(" | ")
        plain = _LINK.sub(r"\1", f"{cause} {advice}").replace("`", "")
        yield from ((code, plain) for code in codes.replace("`", "").split(", "))


EXPLANATIONS = dict(_explanations())
"""Cause and advice of each code as plain text."""
