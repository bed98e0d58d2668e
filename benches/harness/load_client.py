"""The compiled client of `benches/load`: what it sends is written into files before."""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from benches.harness.child import Child
from benches.harness.paths import DATA, ROOT, TARGET

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benches.inputs.sent import Stream

# Times of rows: of JSON up to the tens of seconds, and the seconds of a Timestamp of five bytes.
_TEXT = re.compile(rb'"time":"(.{18})')
_SECONDS = re.compile(rb"\x12[\x06-\x0c]\x08([\x80-\xff]{4}\x06)", re.DOTALL)
_BUILD = "cargo build --quiet --release --locked --package fleetcast-load"


@cache
def _program() -> str:
    subprocess.run(_BUILD.split(), cwd=ROOT, check=True)
    return str(TARGET / "release" / "fleetcast-load")


def http_client(address: str, path: str, key: str, stream: Stream) -> Child:
    """Posts the bodies of a stream, each as fast as the one before is answered or paced."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {address}\r\nX-Api-Key: {key}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    ).encode()
    senders = (
        [head + str(len(body)).encode() + b"\r\n\r\n" + body for body in sender]
        for sender in stream.senders
    )
    folder = _recorded(senders, _TEXT if stream.step_seconds else None, stream.records)
    return Child([_program(), "http", str(stream.step_seconds), folder, address])


def grpc_client(address: str, authority: str, key: str, stream: Stream) -> Child:
    """Writes the messages of a stream over channels that stay open."""
    folder = _recorded(stream.senders, _SECONDS if stream.step_seconds else None, stream.records)
    target = [address, authority, key]
    return Child([_program(), "grpc", str(stream.step_seconds), folder, *target])


def _recorded(
    senders: Iterable[Iterable[bytes]], times: re.Pattern[bytes] | None, records: int
) -> str:
    """A folder with a file for each sender; `times` finds the one of each record, if they go on."""
    DATA.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="sent-", dir=DATA))
    for number, requests in enumerate(senders):
        parts = []
        for request in requests:
            found = times.finditer(request) if times else ()
            offsets = [match.start(1) for match in found]
            assert not times or len(offsets) == records, len(offsets)
            head = [len(request), len(offsets), *offsets]
            parts += [struct.pack(f"<{len(head)}I", *head), request]
        (folder / f"{number:05}").write_bytes(b"".join(parts))
    return str(folder)
