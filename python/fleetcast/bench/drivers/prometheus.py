"""Prometheus, written to by remote write: its defaults, and a week for samples out of order."""

from __future__ import annotations

import shlex
import shutil
import struct
from contextlib import closing, suppress
from http import HTTPStatus
from http.client import HTTPConnection
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from fleetcast.bench.drivers.fleetcast_service import SplitSession
from fleetcast.bench.drivers.line_protocol import LineProtocol, LineSession
from fleetcast.bench.drivers.promql_reads import NS_PER_MS, PromqlReads, label
from fleetcast.bench.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fleetcast.bench.rows import SentRow

_CONFIG = "storage:\n  tsdb:\n    out_of_order_time_window: 7d\n"
_LITERAL_BYTES_MAX = 1 << 16
_MORE = 0x80  # marks a byte of a number that another byte follows


class Prometheus(LineProtocol):
    """A server without targets. The option `bin` is its program."""

    about = "Prometheus by remote write, its defaults, 7 days out of order"
    reads: ClassVar[bool] = True

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        self._port = free_port()
        program = [
            options.get("bin") or shutil.which("prometheus") or "prometheus",
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            f"--web.listen-address=127.0.0.1:{self._port}",
            "--web.enable-remote-write-receiver",
            "--query.lookback-delta=7d",
        ]
        url = f"http://127.0.0.1:{self._port}/api/v1/write"
        super().__init__(folder, {"url": url, "command": shlex.join(program)})

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "prometheus.yml").write_text(_CONFIG)
        super().start()

    def _answers(self) -> bool:
        """Returns true once its log is replayed, which begins after it listens."""
        with suppress(OSError), closing(HTTPConnection("127.0.0.1", self._port)) as connection:
            connection.request("GET", "/-/ready")
            return connection.getresponse().status == HTTPStatus.OK
        return False

    def encode(self, rows: Sequence[SentRow]) -> object:
        return _snappy(b"".join(map(_series, rows)))

    def connect(self) -> SplitSession:
        headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"}
        writer = LineSession(urlsplit(self.options["url"]), headers)
        return SplitSession(writer, PromqlReads(self._port, self.names, "timestamp({selector})"))


def _series(row: SentRow) -> bytes:
    """Returns a row as series of one sample each, as `WriteRequest` has them."""
    tags = sorted((label(name), value) for name, value in row.tags)
    labels = b"".join(_bytes(1, _text(1, name) + _text(2, value)) for name, value in tags)
    tail = b"\x10" + _varint(row.time_ns // NS_PER_MS)
    found = []
    for field, value in row.fields:
        # The label of the metric comes first: its name sorts before letters.
        metric = _text(1, "__name__") + _text(2, f"{row.measurement}_{label(field)}")
        sample = b"\x09" + struct.pack("<d", value) + tail
        found.append(_bytes(1, _bytes(1, metric) + labels + _bytes(2, sample)))
    return b"".join(found)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= _MORE:
        out.append(number % _MORE + _MORE)
        number >>= 7
    return bytes([*out, number])


def _bytes(at: int, content: bytes) -> bytes:
    return bytes([at << 3 | 2]) + _varint(len(content)) + content


def _text(at: int, text: str) -> bytes:
    return _bytes(at, text.encode())


def _snappy(content: bytes) -> bytes:
    """Returns a block of snappy that holds the content as it is."""
    pieces = [_varint(len(content))]
    for start in range(0, len(content), _LITERAL_BYTES_MAX):
        piece = content[start : start + _LITERAL_BYTES_MAX]
        pieces += [b"\xf4", (len(piece) - 1).to_bytes(2, "little"), piece]
    return b"".join(pieces)
