"""Blocks of code in pages, and the commands in them."""

from __future__ import annotations

import re
import shlex
import textwrap
from typing import TYPE_CHECKING, NamedTuple

from tests.tidy.files import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`(fleetcast [^`]+)`")
_FILE = re.compile(r"# ([\w./-]+\.(?:toml|yml))\n")
_PROMPT = re.compile(r"^[$#] ", re.MULTILINE)
_PROGRAM = re.compile(r"(?:^|[\s(]|bin/)fleetcast(?= [a-z])")


class Block(NamedTuple):
    """One block of code of a page."""

    language: str
    text: str

    @property
    def file(self) -> str | None:
        """Name of the file that the block shows: the comment in its first line."""
        found = _FILE.match(self.text)
        return found and found[1]


def pages() -> list[Path]:
    """Pages for users, less decisions (old commands), formats (magic texts) and names of locks."""
    docs = ROOT / "docs"
    folders = (docs.glob("*.md"), docs.glob("send/*.md"), ROOT.glob("integrations/**/*.md"))
    found = {page for pages in folders for page in pages} - {
        docs / "format.md",
        docs / "invariants.md",
    }
    return [ROOT / "README.md", *sorted(found)]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, without the indentation of the list that they are in."""
    found = _FENCED.findall(page.read_text())
    return [Block(language, textwrap.dedent(text)) for language, text in found]


def links(page: Path) -> list[tuple[str, str]]:
    """File and anchor of each link to another page or file of the project."""
    text = _FENCED.sub("", page.read_text())
    return re.findall(r"\]\((?![a-z]+:)([^)#\s]*)#?([^)\s]*)\)", text)


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def commands(page: Path) -> Iterator[list[str]]:
    """Words of each command of fleetcast on a page, in blocks and in sentences."""
    shown = [block.text for block in blocks(page) if block.language in ("", "sh", "console")]
    lines = [line for text in shown for line in _joined(text).splitlines()]
    for line in [*lines, *_INLINE.findall(page.read_text())]:
        for part in _PROGRAM.split(line)[1:]:
            yield _words(part)


def _joined(text: str) -> str:
    """A block without prompts, its continued lines in one."""
    return re.sub(r"\\\n\s*", " ", _PROMPT.sub("", text))


def _words(text: str) -> list[str]:
    """Words up to the end of a command; a text that is no shell's is split at its blanks."""
    end = re.search(r"\s[#|>&;]|\s&&|$", text)
    try:
        return shlex.split(text[: end.start()])
    except ValueError:
        return text.split()
