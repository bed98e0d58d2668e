"""Export of a tenant's rows, as of one instant, into a file that is whole or missing."""

from __future__ import annotations

import gzip
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fleetcast.output_file import output_file
from fleetcast.transfer.opening import STDIN, zstd_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from fleetcast.engine import RowStream


def export_jsonl(rows: RowStream, file: BinaryIO, advance: Callable[[int], object]) -> int:
    """Writes all rows of a scan as a record a line and returns their number."""
    count = 0
    for batch in rows:
        count += len(batch)
        advance(len(batch))
        while lines := batch.json_lines():
            file.write(lines)
    return count


@contextmanager
def written(name: str) -> Iterator[BinaryIO]:
    """Yields a file to be filled, as by `output_file`; `-` is standard output.

    A name that ends in `.gz` or `.zst` means compressed text. Example: `acme.jsonl.gz`. Raises
    `OSError`, `OperatorError`.
    """
    if name == STDIN:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with output_file(Path(name)) as file, _compressed(name, file) as target:
        yield target


@contextmanager
def _compressed(name: str, file: BinaryIO) -> Iterator[BinaryIO]:
    if name.endswith(".gz"):
        with gzip.GzipFile(fileobj=file, mode="wb") as inside:
            yield cast("BinaryIO", inside)
    elif name.endswith(".zst"):
        with zstd_module().ZstdFile(file, mode="wb") as inside:
            yield cast("BinaryIO", inside)
    else:
        yield file
