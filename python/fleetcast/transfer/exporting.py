"""Export of a tenant's rows, as of one instant, into a file that is whole or not there."""

from __future__ import annotations

import fcntl
import gzip
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fleetcast.errors import OperatorError
from fleetcast.transfer.opening import STDIN, zstd_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from fleetcast.engine import RowStream


def export_jsonl(rows: RowStream, file: BinaryIO, advance: Callable[[int], object]) -> int:
    """Writes all rows of a scan as a record a line and gives their number."""
    count = 0
    for batch in rows:
        count += len(batch)
        advance(len(batch))
        while lines := batch.json_lines():
            file.write(lines)
    return count


@contextmanager
def written(name: str) -> Iterator[BinaryIO]:
    """A file to be filled that gets its name when it is whole and durable; `-` is standard output.

    Until then it is called `NAME.part`, which another export of the name replaces. Text may be
    compressed by its ending, `.gz` or `.zst`. Raises `OSError`, `OperatorError`.
    """
    if name == STDIN:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"{part} is being written by another export"
            raise OperatorError(message) from None
        try:
            with _compressed(name, file) as target:
                yield target
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


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
