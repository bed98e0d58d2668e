"""Pages of a table of tenants: searched, ordered and cut before any row is written out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleetcast.console.query import ConsoleQuery

ROWS_MAX = 500
_ROWS = 100
_FIRST_MAX = 100_000_000
_DESCENDING = "-"

Row = TypeVar("Row")


class TablePage(NamedTuple):
    """The part of a table that is asked for."""

    search: str
    order: str
    first: int
    rows_max: int
    descending: bool

    @staticmethod
    def of(query: ConsoleQuery, orders: Sequence[str]) -> TablePage:
        """Raises `ConsoleRefused`. `sort` is a column, with a minus sign for the greatest first."""
        words = {*orders, *(_DESCENDING + order for order in orders)}
        sort = query.choice("sort", words, orders[0])
        return TablePage(
            query.text("search").lower(),
            sort.removeprefix(_DESCENDING),
            query.whole("first", 0, _FIRST_MAX),
            query.whole("limit", _ROWS, ROWS_MAX),
            sort.startswith(_DESCENDING),
        )

    def cut(self, rows: list[Row], key: Callable[[Row], float | str]) -> list[Row]:
        """The rows of the page, of all in the order of `key`; equal ones stay as they are."""
        rows.sort(key=key, reverse=self.descending)
        return rows[self.first : self.first + self.rows_max]
