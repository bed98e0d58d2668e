"""DuckDB: COPY of each batch in a transaction, made durable by DuckDB's log; no index."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from fleetcast.bench.drivers import sql
from fleetcast.bench.drivers.hosted import Hosted
from fleetcast.extras import naming_the_extra

with naming_the_extra():
    import duckdb

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleetcast.bench.drivers.sql import Tables
    from fleetcast.bench.rows import RowNames, SentRow


class DuckDb(Hosted):
    """DuckDB within a process of Python."""

    module = __name__
    about = f"DuckDB {duckdb.__version__}: its defaults, COPY, no index"

    def encode(self, rows: Sequence[SentRow]) -> object:
        return sql.Tables(self.names).csv_texts(rows)


class DuckDbEngine:
    """A database file; cursors of one connection share its content."""

    def __init__(self, folder: Path, names: RowNames) -> None:
        self._connection = duckdb.connect(str(folder / "rows.duckdb"))
        self._writes = threading.Lock()
        self._tables = sql.Tables(names)
        for statement in self._tables.create("VARCHAR", "DOUBLE"):
            self._connection.execute(statement)

    def session(self) -> DuckDbSession:
        return DuckDbSession(self._connection.cursor(), self._tables, self._writes)

    def settle(self) -> None:
        self._connection.cursor().execute("CHECKPOINT")

    def close(self) -> None:
        self._connection.close()


class DuckDbSession(sql.SqlSession):
    """See `Session`."""

    def __init__(
        self,
        cursor: Any,  # noqa: ANN401 - has no types
        tables: Tables,
        writes: threading.Lock,
    ) -> None:
        super().__init__(tables)
        self._cursor = cursor
        self._writes = writes

    def write(self, batch: dict[str, bytes]) -> None:
        with self._writes, os.fdopen(os.memfd_create("rows"), "r+b", buffering=0) as file:
            self._cursor.begin()
            for measurement, text in batch.items():
                file.seek(0)
                file.truncate()
                file.write(text)
                path = f"/proc/self/fd/{file.fileno()}"
                self._cursor.execute(f"COPY {measurement} FROM '{path}' (FORMAT csv, HEADER false)")
            self._cursor.commit()

    def ask(self, statement: str, values: Sequence[object] = ()) -> Any:  # noqa: ANN401 - rows
        return self._cursor.execute(statement, values).fetchall()

    def close(self) -> None:
        self._cursor.close()


engine = DuckDbEngine
