"""Pages of a table of tenants. Rows are searched, ordered and cut before they are written."""

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
    """The part of a table that a request asks for."""

    search: str
    order: str
    first: int
    rows_max: int
    descending: bool

    @staticmethod
    def of(query: ConsoleQuery, orders: Sequence[str]) -> TablePage:
        """Reads a page from a query. Raises `ConsoleRefused`.

        `sort` is a column; a minus sign puts the greatest value first. Example: `-bytes`.
        """
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
        """Returns the rows of the page, after sorting all rows by `key`; the sort is stable."""
        rows.sort(key=key, reverse=self.descending)
        return rows[self.first : self.first + self.rows_max]
