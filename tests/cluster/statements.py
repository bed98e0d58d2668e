"""Statements that the primary is sent, out of its log."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .nodes import engine

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGGED = re.compile(r"LOG:  (?:execute [^:]+|statement): (.+)")
_CHECK = "SELECT current_setting('fsync')"
"""The beginning of the question that goes out behind each statement."""


class StatementLog:
    """The log of a primary from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end = path.stat().st_size

    def news(self) -> list[str]:
        """First lines of the statements since the last call, checks of promises included."""
        with self._path.open("rb") as file:
            file.seek(self._end)
            content = file.read()
        self._end += len(content)
        return _LOGGED.findall(content.decode())

    @staticmethod
    def without_checks(statements: list[str]) -> list[str]:
        """All but the checks of promises."""
        return [sql for sql in statements if not sql.startswith(_CHECK)]


@contextmanager
def logged() -> Iterator[StatementLog]:
    """Logs all statements of sessions of fleetcast that begin in the block.

    A statement is in the log before it is answered.
    """
    engine("sql", "ALTER ROLE fleet SET log_statement = 'all'")
    try:
        yield StatementLog(Path(os.environ["ENGINE_WORK"]) / f"n{engine('primary')}.log")
    finally:
        engine("sql", "ALTER ROLE fleet RESET log_statement")
