"""Artefacts of releases: files named by the SHA-256 of their content."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Protocol

from fleetcast.errors import OperatorError


class Models(Protocol):
    """Artefacts by the SHA-256 of their content, in hexadecimal."""

    def read(self, sha256: str) -> bytes:
        """The content of one.

        Raises `OSError` where it cannot be read, `OperatorError` where it is another one.
        """

    def keep(self, content: bytes) -> None:
        """Keeps one, whole or not at all, and mends a damaged one. Raises `OSError`."""


class ModelFiles:
    """Artefacts in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, sha256: str) -> bytes:
        """The content of one. Raises `OSError`, `OperatorError` where it is another one."""
        path = self._path(sha256)
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            message = f"{path} is not the file that was promoted"
            raise OperatorError(message)
        return content

    def keep(self, content: bytes) -> None:
        """Copies one in, whole or not at all: the release stays what it was. Raises `OSError`."""
        path = self._path(hashlib.sha256(content).hexdigest())
        if path.exists() and path.read_bytes() == content:  # promoting again mends a damaged file
            return
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).rename(path)

    def _path(self, sha256: str) -> Path:
        return self.folder / f"{sha256}.onnx"
