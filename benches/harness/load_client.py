"""The compiled client of `benches/load`: what it sends is written into files before."""

from __future__ import annotations

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
    folder = _recorded(
        (head + str(len(body)).encode() + b"\r\n\r\n" + body for body in sender)
        for sender in stream.senders
    )
    return Child([_program(), "http", address, str(folder), str(stream.step_seconds)])


def grpc_client(address: str, authority: str, key: str, stream: Stream) -> Child:
    """Writes the messages of a stream over channels that stay open."""
    folder = _recorded(stream.senders)
    return Child([_program(), "grpc", address, authority, key, str(folder)])


def _recorded(senders: Iterable[Iterable[bytes]]) -> Path:
    """A folder with what each sender sends, each request behind its length."""
    DATA.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="sent-", dir=DATA))
    for number, requests in enumerate(senders):
        parts = (len(each).to_bytes(4, "little") + each for each in requests)
        (folder / f"{number:05}").write_bytes(b"".join(parts))
    return folder
