"""Findings: what a check has looked at, how it is, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """Outcome of one check. One that is `ok` and has `advice` is a warning."""

    check: str
    ok: bool
    detail: str
    advice: str | None = None

    @staticmethod
    def good(check: str, detail: str) -> Finding:
        """Nothing to do."""
        return Finding(check, ok=True, detail=detail)

    @staticmethod
    def warning(check: str, detail: str, advice: str) -> Finding:
        """Sound as it is, until something else happens."""
        return Finding(check, ok=True, detail=detail, advice=advice)

    @staticmethod
    def failure(check: str, detail: str, advice: str) -> Finding:
        """Not sound."""
        return Finding(check, ok=False, detail=detail, advice=advice)
