"""Configuration of a child process: one line of JSON on the child's standard input.

The line does not contain the settings. A child reads them from the memory behind `settings_fd`.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from fleetcast.installation.directory import DataDirectory

STDIN = 0
_CHUNK_BYTES = 65_536
_SWITCH_SECONDS = 0.0005  # how long a thread that computes in Python makes another thread wait


@dataclass(frozen=True, kw_only=True)
class ChildConfiguration:
    """Everything a child needs to know. The descriptors in it are inherited."""

    directory: DataDirectory
    master_key: bytes = field(repr=False)
    counters_fd: int
    """Memory of the shared counters."""
    settings_fd: int
    """Memory of the shared settings."""
    run: str
    """The name of this run of the service."""
    listener_fd: int | None = None
    """A bound socket, or `None` for no listener; set for each child."""
    ready_fd: int = -1
    """A pipe for signs that the child serves and lives; set for each start of a child."""

    @property
    def descriptors(self) -> list[int]:
        """The descriptors that the child inherits."""
        descriptors = [self.counters_fd, self.settings_fd, self.ready_fd]
        return descriptors if self.listener_fd is None else [*descriptors, self.listener_fd]

    def encode(self) -> bytes:
        """Returns the configuration as one line."""
        document = asdict(self) | {
            "directory": str(self.directory.root),
            "master_key": self.master_key.hex(),
        }
        return json.dumps(document).encode() + b"\n"

    @staticmethod
    def decode(line: bytes) -> ChildConfiguration:
        """Reads the line that `encode` wrote."""
        document = json.loads(line)
        document["directory"] = DataDirectory(Path(document["directory"]))
        document["master_key"] = bytes.fromhex(document["master_key"])
        return ChildConfiguration(**document)


def read_configuration() -> ChildConfiguration:
    """Reads the configuration. Raises `EOFError` if the supervisor is gone already.

    Every child begins with this call. Modules that are imported by now live as long as the process.
    The call hides them from the garbage collector, which would visit them at each full collection
    and at the end.
    """
    gc.freeze()
    sys.setswitchinterval(_SWITCH_SECONDS)
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(STDIN, _CHUNK_BYTES)
        if not chunk:
            raise EOFError
        line += chunk
    return ChildConfiguration.decode(line)
