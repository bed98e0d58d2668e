"""Answers of the private listener, and the header fields that all of them carry."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.surface.browser_policy import SECURITY_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from wsgiref.types import StartResponse

JSON_TYPE = "application/json"
NO_STORE = ("Cache-Control", "no-store")


class Answer(NamedTuple):
    """An answer: status, body in pieces, type, and its particular header fields."""

    status: int
    body: Sequence[bytes | memoryview] = ()
    kind: str = JSON_TYPE
    fields: tuple[tuple[str, str], ...] = (NO_STORE,)

    def sent(self, start_response: StartResponse) -> Iterable[bytes]:
        """Begins the response with status and header fields, and returns its body."""
        typed = [("Content-Type", self.kind)] if self.body else []
        length = ("Content-Length", str(sum(map(len, self.body))))
        fields = [*typed, length, *SECURITY_FIELDS, *self.fields]
        start_response(f"{self.status} {HTTPStatus(self.status).phrase}", fields)
        return [bytes(piece) for piece in self.body]


def document(content: object, status: int = 200, *fields: tuple[str, str]) -> Answer:
    """Makes an answer with a JSON document, which no cache keeps."""
    body = json.dumps(content, separators=(",", ":")).encode()
    return Answer(status, (body,), fields=(NO_STORE, *fields))
