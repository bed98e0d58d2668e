"""Findings: the subject of a check, its condition, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """Outcome of one check. A finding that is `ok` and has `advice` is a warning."""

    check: str
    ok: bool
    detail: str
    advice: str | None = None

    @staticmethod
    def good(check: str, detail: str) -> Finding:
        """Makes a finding that needs no action."""
        return Finding(check, ok=True, detail=detail)

    @staticmethod
    def warning(check: str, detail: str, advice: str) -> Finding:
        """Makes a finding that is sound now, but may not stay sound."""
        return Finding(check, ok=True, detail=detail, advice=advice)

    @staticmethod
    def failure(check: str, detail: str, advice: str) -> Finding:
        """Makes a finding that is not sound."""
        return Finding(check, ok=False, detail=detail, advice=advice)
