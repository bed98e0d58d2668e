"""Files to import: plain, compressed by gzip or zstd, or standard input."""

from __future__ import annotations

import gzip
import sys
import zlib
from contextlib import contextmanager
from importlib import import_module
from io import SEEK_CUR
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import FileIO
    from types import ModuleType
    from typing import BinaryIO

STDIN = "-"


def size_of(name: str) -> int:
    """Bytes of a file on disk; 0 for standard input. Raises `OSError` if there is no such file."""
    return 0 if name == STDIN else Path(name).stat().st_size


@contextmanager
def opened(name: str, advance: Callable[[int], object]) -> Iterator[Readable]:
    """Yields the bytes of a file, decompressed by its ending (`.gz`, `.zst`).

    `advance` is called with the bytes read from the disk. Raises `OSError`. Raises `OperatorError`
    if the compressed data are damaged.
    """
    if name == STDIN:
        yield Readable(sys.stdin.buffer, advance)
        return
    with Path(name).open("rb", buffering=0) as file:
        counted = Readable(file, advance, file if file.seekable() else None)
        if name.endswith(".gz"):
            with sound(name), gzip.GzipFile(fileobj=cast("BinaryIO", counted)) as inside:
                yield Readable(inside)
        elif name.endswith(".zst"):
            yield from _zstd(name, counted)
        else:
            yield counted


def without_compression(name: str) -> str:
    """Returns a file's name without the ending of its compression: `a.csv` for `a.csv.gz`."""
    return name.removesuffix(".gz").removesuffix(".zst")


def zstd_module() -> ModuleType:
    """The standard library's zstd, from Python 3.14, or its twin for earlier versions."""
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    return import_module(name)


def _zstd(name: str, counted: Readable) -> Iterator[Readable]:
    zstd = zstd_module()
    try:
        with sound(name), zstd.ZstdFile(counted) as inside:
            yield Readable(inside)
    except zstd.ZstdError as error:
        raise _damaged(name) from error


@contextmanager
def sound(name: object) -> Iterator[None]:
    """Names the fault of a file that the block decompresses. Raises `OperatorError`."""
    try:
        yield
    except EOFError as error:
        message = f"{name}: cannot be decompressed: it is cut short"
        raise OperatorError(message) from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(name) from error


def _damaged(name: object) -> OperatorError:
    return OperatorError(
        f"{name}: cannot be decompressed: it is damaged, or not compressed as its name says"
    )


class Readable:
    """A file that tells `advance` how much of it was read; `plain` is a file that can go back."""

    def __init__(
        self,
        file: BinaryIO | gzip.GzipFile,
        advance: Callable[[int], object] | None = None,
        plain: FileIO | None = None,
    ) -> None:
        self._file = file
        self._advance = advance
        self._plain = plain
        self._again = 0

    def read(self, size: int = -1) -> bytes:
        """Returns at most `size` bytes, and no bytes at the end."""
        part = self._file.read(size)
        if self._advance is not None:
            self._advance(max(len(part) - self._again, 0))
            self._again = max(self._again - len(part), 0)
        return part

    def unread(self, size: int) -> bool:
        """Makes `read` return the last `size` bytes again; returns false if it cannot."""
        if self._plain is None:
            return False
        self._plain.seek(-size, SEEK_CUR)
        self._again += size
        return True
