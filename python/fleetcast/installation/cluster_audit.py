"""Audit log of an installation of many nodes: a record per change, which one node repeats."""

from __future__ import annotations

import json
import socket
import sys
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.errors import RecordsUnavailable
from fleetcast.installation.audit_log import audit_line
from fleetcast.log_lines import write_line
from fleetcast.record_store import FACTS, count_up

if TYPE_CHECKING:
    from fleetcast.engine import Records

_LINES = "lines"
_NUMBER_KEY = b"number"
_REPEATED_KEY = b"repeated"
SPACES = (_LINES,)
FACT_KEYS = (_NUMBER_KEY, _REPEATED_KEY)


class ClusterAudit:
    """Changes of accounts as records, in their order."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._version: int | None = None

    def record(self, event: str, **details: object) -> None:
        """Adds a record. If that fails the change stands all the same, with a warning."""
        line = audit_line(event, {**details, "host": socket.gethostname()})
        try:
            with self._records.begin(write=True) as view:
                view.put(_LINES, f"{count_up(view, _NUMBER_KEY):020}".encode(), line)
        except RecordsUnavailable as error:
            sys.stderr.write(f"fleetcast: warning: the audit log has no line of this: {error}\n")

    def follow(self) -> None:
        """Writes the changes that no node has written yet to the log.

        A crash may repeat some of them. Raises `ControlStoreUnavailable`, and `ValueError` for a
        malformed record.
        """
        try:
            with self._records.begin(write=False) as view:
                version = view.version
            if version != self._version:
                self._repeat()
        except RecordsUnavailable as error:
            raise ControlStoreUnavailable(str(error)) from error

    def _repeat(self) -> None:
        with self._records.begin(write=True) as view:
            last = view.get(FACTS, _REPEATED_KEY) or b""
            first = last
            for key, line in view.under(_LINES, b"", last + b"\0"):
                write_line(json.loads(line))
                last = key
            if last != first:
                view.put(FACTS, _REPEATED_KEY, last)
            self._version = view.version
