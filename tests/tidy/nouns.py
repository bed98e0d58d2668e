"""Names of types that are no nouns: participles, gerunds, adverbs, verbs."""

from __future__ import annotations

import re

# Nouns of the field that end as participles do.
NOUNS = {
    *("Accounting", "Encoding", "Feed", "Framing", "Mapping", "Need", "Ring", "Seed", "Setting"),
    *("Speed", "String"),
}
# Words without such an ending. A noun behind them makes a name of them: `KnownNames`, `OpenPlane`.
OTHERS = {
    *("Ahead", "Always", "Asks", "Away", "Below", "Both", "Broken", "Chosen", "Drawn", "Due"),
    *("Each", "Fast", "Found", "Given", "Held", "How", "Kept", "Known", "Lone", "Long", "Lost"),
    *("Made", "Newest", "Now", "Open", "Own", "Present", "Seen", "Sent", "Shown", "Soon"),
    *("Sparse", "Spent", "Swept", "Taken", "Then", "Told", "Unfit", "Unknown", "Unseen", "When"),
    *("Written",),
}
_LAST = re.compile(r"[A-Z][a-z0-9]*$")


def is_noun(name: str) -> bool:
    """Returns true if the last word of a name may be a noun. Example: `Held` is none."""
    found = _LAST.search(name)
    last = found[0] if found else name
    return last in NOUNS or not (last in OTHERS or last.endswith(("ed", "ing")))
