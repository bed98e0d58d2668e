"""Refusals of the console."""

from __future__ import annotations

from fleetcast.surface.answers import document


class ConsoleRefused(Exception):
    """A request that the console refuses: status, code, and what to do about it."""

    def __init__(
        self, status: int, code: str, message: str, *fields: tuple[str, str], **context: object
    ) -> None:
        super().__init__(code)
        self.answer = document({"error": code, "message": message, **context}, status, *fields)
