"""Writes lines to a data plane in batches, and finds the lines that a refusal is about."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetcast.engine import BATCH_RECORDS_MAX
from fleetcast.errors import Refused, TenantFull

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleetcast.config.sections import Limits
    from fleetcast.engine import Plane
    from fleetcast.importer.reading import Line

BATCH_BYTES_MAX = 8_388_608  # bounds memory where records are long
_REJECTIONS_KEPT_MAX = 100
_INVALID = {
    "tags": "tags: more than limits.tags_max, or one without a name",
    "fields": "fields: more than limits.fields_max",
}


@dataclass
class Report:
    """Fate of the lines; `rejections` holds the first rejected ones with file and line."""

    accepted: int = 0
    rejected: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    rejections: list[dict[str, object]] = field(default_factory=list)


class Importer:
    """Imports files into one plane and keeps one report."""

    def __init__(self, plane: Plane, limits: Limits) -> None:
        self.report = Report()
        self._plane = plane
        self._limits = limits
        self._file = ""

    def run(self, file: str, lines: Iterable[Line]) -> None:
        """Writes the lines of one file. Raises `StoreError`, and what the lines raise."""
        self._file = file
        batch: list[Line] = []
        size = 0
        for line in lines:
            if line.problem is not None:
                self._reject(line, line.problem)
                continue
            size += len(line.record)
            if len(batch) == BATCH_RECORDS_MAX or size > BATCH_BYTES_MAX:
                self._write(batch)
                batch, size = [], len(line.record)
            batch.append(line)
        self._write(batch)

    def _write(self, lines: list[Line]) -> None:
        """Writes all that can be: a refusal costs the records it names, or the batch is halved."""
        while lines:
            body = b"[" + b",".join(line.record for line in lines) + b"]"
            try:
                result = self._plane.write_json(
                    body, cursor=None, batch_records_max=BATCH_RECORDS_MAX, **self._limits.of_batch
                )
            except Refused as refusal:
                faults = _faults(refusal, len(lines))
                if not faults and len(lines) > 1:
                    middle = len(lines) // 2
                    self._write(lines[:middle])
                    lines = lines[middle:]
                    continue
                faults = faults or {0: _reason(refusal)}
                for index, reason in faults.items():
                    self._reject(lines[index], reason)
                lines = [line for index, line in enumerate(lines) if index not in faults]
            else:
                self.report.accepted += result.accepted_count
                for index in result.rejected_indices:
                    self._reject(lines[index], _rejection(lines[index]))
                return

    def _reject(self, line: Line, reason: str) -> None:
        report = self.report
        report.rejected += 1
        report.reasons[reason] += 1
        if len(report.rejections) < _REJECTIONS_KEPT_MAX:
            report.rejections.append({"file": self._file, "line": line.number, "reason": reason})


def _faults(refusal: Refused, count: int) -> dict[int, str]:
    """The first fault of each record that a schema refusal names by its index."""
    faults: dict[int, str] = {}
    _, context = refusal.args
    detail = context.get("detail")
    for fault in detail if isinstance(detail, list) else []:
        _, *inside = fault["loc"]
        if inside and isinstance(inside[0], int) and inside[0] < count:
            if fault["type"] == "json_invalid":
                return {}  # its index is a position in the text
            path = ".".join(str(part) for part in inside[1:])
            faults.setdefault(inside[0], f"{path}: {fault['msg']}" if path else fault["msg"])
    return faults


def _reason(refusal: Refused) -> str:
    code, context = refusal.args
    if code == "field_type_conflict":
        return f"field {context.get('field')} was written with another type before"
    if isinstance(refusal, TenantFull):
        return f"{context.get('field')}: as many as the tenant may have are there"
    if code == "invalid_input":
        return _INVALID[str(context["field"])]
    return code


def _rejection(line: Line) -> str:
    """Reason that the engine rejects a sound record for: there are two."""
    record = json.loads(line.record)
    return "time: before 2000-01-01T00:00:00Z" if record.get("fields") else "fields: missing"
