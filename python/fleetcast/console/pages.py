"""Files of the browser's side, read once and served under a name that changes with any file.

The page asks for `static/HASH/…`, in which HASH is the hash of all files together. A browser may
therefore keep each file for ever, and a new version never meets an old file. The files are served
as they are, without a build.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.console.answers import ConsoleRefused
from fleetcast.surface.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_PAGE = "index.html"
_FOR_EVER = ("Cache-Control", "public, max-age=31536000, immutable")
_ASK_AGAIN = ("Cache-Control", "no-cache")


class _PageFile(NamedTuple):
    body: bytes
    kind: str
    etag: str


class Pages:
    """The page and the files that it loads."""

    def __init__(self) -> None:
        found = dict(sorted(_found(files("fleetcast.console") / "static")))
        whole = hashlib.sha256()
        for name, body in found.items():
            whole.update(f"{name}\0{len(body)}\0".encode() + body)
        self.version = whole.hexdigest()[:16]
        found[_PAGE] = found[_PAGE].replace(b"STATIC", f"static/{self.version}".encode())
        self._files: Mapping[str, _PageFile] = {
            name: _PageFile(body, _TYPES[name.rpartition(".")[2]], _etag(body))
            for name, body in found.items()
        }

    def page(self, if_none_match: str) -> Answer:
        """Answers with the page."""
        return _answer(self._files[_PAGE], if_none_match, _ASK_AGAIN)

    def file(self, path: str, if_none_match: str) -> Answer:
        """Answers with a file that the page loads, `HASH/NAME`. Raises `ConsoleRefused`."""
        version, _, name = path.partition("/")
        file = self._files.get(name)
        if file is None or version != self.version or name == _PAGE:
            raise ConsoleRefused(404, "not_found", "Load the page again: it has changed.")
        return _answer(file, if_none_match, _FOR_EVER)


def _found(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _found(entry, f"{prefix}{entry.name}/")
        elif entry.name.rpartition(".")[2] in _TYPES:
            yield prefix + entry.name, entry.read_bytes()


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:16]}"'


def _answer(file: _PageFile, if_none_match: str, caching: tuple[str, str]) -> Answer:
    fields = (caching, ("ETag", file.etag))
    known = {text.strip().removeprefix("W/") for text in if_none_match.split(",")}
    if file.etag in known or "*" in known:
        return Answer(304, fields=fields)
    return Answer(200, (file.body,), file.kind, fields)
