"""Faults of files that polars reads, in our words. The words of polars name lines of its source."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import polars as pl

from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OF_SYSTEM = re.compile(r"\(os error (\d+)\)")


@contextmanager
def read_by_polars(place: object, problem: str) -> Iterator[None]:
    """Turns an error of the block about a file into a message for operators.

    `problem` continues the name of the place. Example: `rows.csv: is damaged`. Raises
    `OperatorError`, and `OSError` as Python itself raises it.
    """
    try:
        yield
    except OSError as error:
        if error.strerror:
            raise
        found = _OF_SYSTEM.search(str(error))  # polars has the system's number only in its text
        message = f"{place}: {os.strerror(int(found[1])) if found else problem}"
        raise OperatorError(message) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        message = f"{place}: {problem}"
        raise OperatorError(message) from error


def read_table(path: Path) -> pl.DataFrame:
    """Reads a whole file: Parquet if its name ends in `.parquet`, otherwise CSV.

    Raises `OSError`, `OperatorError`.
    """
    path.open("rb").close()  # Python's error names the file; polars' error may cut the name
    with read_by_polars(path, "is damaged"):
        return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
