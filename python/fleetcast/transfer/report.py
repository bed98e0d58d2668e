"""Fate of the records of an import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

REJECTIONS_KEPT_MAX = 100


class Rejection(NamedTuple):
    """A rejected record: its place, the reason, and the record as the file has it."""

    file: str
    line: int
    reason: str
    record: str


@dataclass
class Report:
    """Numbers of records; `rejections` holds the first rejected records with file and line."""

    accepted: int = 0
    rejected: int = 0
    no_entity: int = 0
    """Accepted records without `entity_id`."""
    other_measurement: int = 0
    """Other accepted records, of a measurement that the service does not serve."""
    clamped: int = 0
    """Accepted records whose time lay in the future. They got the instant of the import."""
    reasons: dict[str, int] = field(default_factory=dict)
    rejections: list[dict[str, object]] = field(default_factory=list)

    def reject(self, rejection: Rejection) -> None:
        """Counts a rejected record."""
        self.rejected += 1
        self.reasons[rejection.reason] = self.reasons.get(rejection.reason, 0) + 1
        if len(self.rejections) < REJECTIONS_KEPT_MAX:
            file, line, reason, _ = rejection
            self.rejections.append({"file": file, "line": line, "reason": reason})
