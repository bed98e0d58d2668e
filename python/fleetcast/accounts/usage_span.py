"""States of the control store between which only usage was written, told to whoever decides.

Decisions that are remembered stand as long as the control store's file does, by the number of its
last transaction (`rust/front/src/admission/lmdb.rs`). Usage, which decides nothing, is written
there once a second. So whoever writes it says in a file beside it which states are one to them.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    State = tuple[int, int, int, int]

_NANOSECONDS = 1_000_000_000


class UsageSpan:
    """The span that one process extends, in the file `usage.span` beside `file`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._said = file.with_name("usage.span")
        self._first: State | None = None
        self._last: State | None = None
        self._transaction = 0

    def begin(self, transaction: int) -> None:
        """To be called within a transaction that writes usage alone and follows that number."""
        self._transaction = transaction + 1
        first, last = self._first, self._last
        self._first = self._last = None
        with contextlib.suppress(OSError):
            before = self._state(transaction)
            self._first = first if before == last else before

    def end(self) -> None:
        """To be called after it. What cannot be said ends decisions, and nothing else."""
        with contextlib.suppress(OSError):
            last = self._state(self._transaction)
            words = " ".join(map(str, (*(self._first or ()), *last)))
            new = self._said.with_name("usage.span-new")
            new.touch(mode=0o600)
            new.write_text(words)
            new.replace(self._said)
            self._last = last

    def _state(self, transaction: int) -> State:
        stat = self._file.stat()
        return (transaction, stat.st_size, *divmod(stat.st_ctime_ns, _NANOSECONDS))
