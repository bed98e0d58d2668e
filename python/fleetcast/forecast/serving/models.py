"""Artefacts of releases, named by the SHA-256 of their content."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fleetcast.errors import OperatorError, RecordsUnavailable

if TYPE_CHECKING:
    from fleetcast.engine import Records

MODELS = "models"
"""The space of records by SHA-256."""


class RecordModels:
    """Artefacts as records. An artefact that was read is also kept in a folder of this node."""

    def __init__(self, records: Records, cache: ModelFiles) -> None:
        self._records = records
        self._cache = cache

    def read(self, sha256: str) -> bytes:
        """The content of an artefact.

        Raises `OSError` if the records cannot be read, `OperatorError` if the artefact is missing.
        """
        with suppress(OSError, OperatorError):
            return self._cache.read(sha256)
        try:
            with self._records.begin(write=False) as view:
                content = view.get(MODELS, sha256.encode())
        except RecordsUnavailable as error:
            raise OSError(str(error)) from error
        if content is None or hashlib.sha256(content).hexdigest() != sha256:
            message = f"the model {sha256} is not in {self._records.place}"
            raise OperatorError(message)
        with suppress(OSError):  # a full disk must not prevent its use
            self._cache.keep(content)
        return content

    def keep(self, content: bytes) -> None:
        """Keeps an artefact for all nodes. Raises `OSError`."""
        key = hashlib.sha256(content).hexdigest().encode()
        try:
            with self._records.begin(write=True) as view:
                if view.get(MODELS, key) != content:
                    view.put(MODELS, key, content)
        except RecordsUnavailable as error:
            raise OSError(str(error)) from error


class ModelFiles:
    """Artefacts in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, sha256: str) -> bytes:
        """The content of an artefact. Raises `OSError`, `OperatorError` for another hash."""
        path = self._path(sha256)
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            message = f"{path} is not the file that was promoted"
            raise OperatorError(message)
        return content

    def keep(self, content: bytes) -> None:
        """Copies an artefact in, whole or not at all. Raises `OSError`."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(hashlib.sha256(content).hexdigest())
        if path.exists() and path.read_bytes() == content:  # a promotion mends a damaged file
            return
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).rename(path)

    def _path(self, sha256: str) -> Path:
        return self.folder / f"{sha256}.onnx"


Models: TypeAlias = RecordModels | ModelFiles
"""Artefacts by the SHA-256 of their content, in hexadecimal."""
