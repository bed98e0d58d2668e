"""Sections of docs/forecasts.md between markers, each written by a command of its own."""

from __future__ import annotations

import sys
import textwrap

BEGIN, END = (
    "<!-- figures of {}: written by benches/forecast -->\n",
    "<!-- end of figures of {} -->\n",
)


def say(line):
    print(line, file=sys.stderr, flush=True)


def wrapped(text):
    """A paragraph as lines of a page; rows of tables and pictures stay as they are."""
    if not text or text.startswith(("|", "!")):
        return [text]
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)


def write(page, name, lines):
    """Puts the section `name` in the place of the one before, or at the end of the page."""
    figures = "\n".join(line for text in lines for line in wrapped(text))
    before, _, rest = page.read_text().partition(BEGIN.format(name))
    _, _, after = rest.partition(END.format(name))
    page.write_text(f"{before}{BEGIN.format(name)}\n{figures}\n{END.format(name)}{after}")
