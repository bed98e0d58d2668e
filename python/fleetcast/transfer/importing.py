"""An import of files: reads them, notes its position, and ends when it is told to."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from contextlib import contextmanager
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from fleetcast.transfer.importer import Importer
from fleetcast.transfer.report import Rejection, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from fleetcast.config.sections import Limits
    from fleetcast.engine import Plane
    from fleetcast.transfer.batches import Cursor
    from fleetcast.transfer.readers import Reader
    from fleetcast.transfer.resume import Position, Resume

_NOTED_EVERY_SECONDS = 1.0


class Import:
    """Files on their way into a plane."""

    def __init__(
        self,
        plane: Plane,
        limits: Limits,
        resume: Resume,
        rejects: BinaryIO | None,
        *,
        check: bool,
    ) -> None:
        self._plane = plane.trial() if check else plane
        self._trial: Plane | None = None
        self._rejected: list[Rejection] = []
        self._resume = resume
        self._rejects = rejects
        self._interrupt = _Interrupt()
        self._noted_at = time.monotonic()
        self.file = ""
        self.position: Position = resume.state.noted
        # Lines in a device or a pipe cannot be taken back when an import resumes.
        self._rejects_are_kept = rejects is not None and S_ISREG(os.fstat(rejects.fileno()).st_mode)
        if rejects is not None and self._rejects_are_kept:
            rejects.truncate(resume.state.rejects_bytes)
            rejects.seek(resume.state.rejects_bytes)
        self._importer = Importer(resume.state.report, limits, self._reject, self._cursor)

    @property
    def report(self) -> Report:
        """Fate of the records so far."""
        return self._resume.state.report

    def run(self, names: Sequence[str], reader: Callable[[str], Reader]) -> None:
        """Imports all files.

        Raises `OSError`, `OperatorError`, `StoreError`, `KeyboardInterrupt`. After an error, too,
        all records up to `position` are done.
        """
        if self._resume.state.is_done:
            return
        with self._interrupt.caught():
            try:
                for index, name in enumerate(names):
                    if index >= self.position[0]:
                        self._file(index, name, reader(name))
            except BaseException:
                with contextlib.suppress(OSError):  # the first error says more
                    self._note()
                raise
            self._note()
            self._resume.end()

    def _file(self, index: int, name: str, reader: Reader) -> None:
        self.file = name
        if index > self.position[0]:
            self.position = index, 0
        noted = self.position[1]
        for span in reader.spans():
            for plane, part in self._parts(span, noted):
                with self._interrupt.held():
                    self._span(plane, reader, part)
                    if time.monotonic() - self._noted_at > _NOTED_EVERY_SECONDS:
                        self._note()

    def _parts(self, span: Any, noted: int) -> Iterator[tuple[Plane, Any]]:  # noqa: ANN401 - the reader's type
        """Yields the part stored before a crash, with a trial that counts it, and the rest."""
        file, stored = self._resume.stored
        if file < self.position[0]:
            stored = 0
        elif file > self.position[0]:
            stored = span.last
        if max(noted, stored) < span.first:
            yield self._plane, span  # whole, so its lines need no count
            return
        span = span.after(noted)
        before, after = span.until(stored), span.after(stored)
        if before.last >= before.first:
            self._trial = self._trial or self._plane.trial()
            yield self._trial, before
        if after.last >= after.first:
            yield self._plane, after

    def _span(self, plane: Plane, reader: Reader, part: Any) -> None:  # noqa: ANN401 - the reader's type
        """Writes a part of a file. After an error, position and report are as of its last batch."""
        done = part.first - 1
        self._importer.begin()
        try:
            if part.problem is not None:
                self._reject(part.first, part.problem, part.text[:1000].decode(errors="replace"))
            else:
                for batch in reader.batch(part).pieces():
                    self._importer.write(plane, batch)
            done = part.last
        finally:
            stored = self._importer.last
            if plane is self._plane and stored is not None:
                self._resume.stored = self.position[0], stored
            done = max(done, stored or 0)
            self.position = self.position[0], done
            self._report_rejected(done)

    def _cursor(self) -> Cursor | None:
        return self._resume.cursor(self.position[0])

    def _reject(self, line: int, reason: str, record: str) -> None:
        self._rejected.append(Rejection(self.file, line, reason, record))

    def _report_rejected(self, last: int) -> None:
        """Reports the rejected records up to a line, in the order of the file.

        Records after the line are found again when the import resumes.
        """
        found = [rejection for rejection in self._rejected if rejection.line <= last]
        for rejection in sorted(found, key=lambda rejection: rejection.line):
            self.report.reject(rejection)
            if self._rejects is not None:
                text = json.dumps(rejection._asdict(), ensure_ascii=False)
                self._rejects.write(text.encode(errors="replace") + b"\n")
        self._rejected.clear()

    def _note(self) -> None:
        """Stores the position up to which the import is done."""
        state = self._resume.state
        if self._rejects is not None:
            self._rejects.flush()
            if self._rejects_are_kept:
                state.rejects_bytes = self._rejects.tell()
        state.noted = self.position
        state.write_id = self._importer.write_id or state.write_id
        self._resume.save()
        self._noted_at = time.monotonic()


class _Interrupt:
    """Ctrl-C and SIGTERM act between two batches. Within a batch its fate would be unknown."""

    def __init__(self) -> None:
        self._is_held = False
        self._came = False

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Takes over the signals, if this is the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._come) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Delays interrupts in the block, and raises `KeyboardInterrupt` after it instead."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
        if self._came:
            raise KeyboardInterrupt

    def _come(self, *_: object) -> None:
        self._came = True
        if not self._is_held:
            raise KeyboardInterrupt


_SIGNALS = (signal.SIGINT, signal.SIGTERM)
