"""Faults of files that polars reads, in our words: its own name lines of its source."""

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
    """Says what is wrong with a file that the block reads.

    `problem` continues the name of the place. Raises `OperatorError`, and `OSError` as Python
    itself raises it.
    """
    try:
        yield
    except OSError as error:
        if error.strerror:
            raise
        found = _OF_SYSTEM.search(str(error))  # polars has the system's number in its text alone
        message = f"{place}: {os.strerror(int(found[1])) if found else problem}"
        raise OperatorError(message) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        message = f"{place}: {problem}"
        raise OperatorError(message) from error


def read_table(path: Path) -> pl.DataFrame:
    """A whole file, which is CSV unless its name ends in `.parquet`.

    Raises `OSError`, `OperatorError`.
    """
    path.open("rb").close()  # Python's error names the file, that of polars a part of its name
    with read_by_polars(path, "is damaged"):
        return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
