"""Answers of the console, and the header fields that all of them carry."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.surface.browser_policy import SECURITY_FIELDS

if TYPE_CHECKING:
    from collections.abc import Sequence

JSON_TYPE = "application/json"


class Answer(NamedTuple):
    """An answer: status, body in pieces, type, and its particular header fields."""

    status: int
    body: Sequence[bytes | memoryview] = ()
    kind: str = JSON_TYPE
    fields: tuple[tuple[str, str], ...] = (("Cache-Control", "no-store"),)

    @property
    def line(self) -> str:
        """Status and phrase, such as `200 OK`."""
        return f"{self.status} {HTTPStatus(self.status).phrase}"

    @property
    def head(self) -> list[tuple[str, str]]:
        """All header fields."""
        typed = [("Content-Type", self.kind)] if self.body else []
        length = ("Content-Length", str(sum(map(len, self.body))))
        return [*typed, length, *SECURITY_FIELDS, *self.fields]


def document(content: object, status: int = 200, *fields: tuple[str, str]) -> Answer:
    """Makes an answer with a JSON document, which no cache keeps."""
    body = json.dumps(content, separators=(",", ":")).encode()
    return Answer(status, (body,), fields=(("Cache-Control", "no-store"), *fields))


class ConsoleRefused(Exception):
    """A request that the console refuses: status, code, and what to do about it."""

    def __init__(
        self, status: int, code: str, message: str, *fields: tuple[str, str], **context: object
    ) -> None:
        super().__init__(code)
        self.answer = document({"error": code, "message": message, **context}, status, *fields)
