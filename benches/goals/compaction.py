"""CPU of compaction in the service beside that of parsing and committing the same rows."""

from __future__ import annotations

import resource
import statistics
from typing import TYPE_CHECKING

from benches.goals.effort import new_plane
from benches.goals.table import Line, ms
from benches.harness.measure import cpu_seconds
from benches.harness.paths import DATA
from benches.harness.servers import CONNECTIONS, http_driven
from benches.inputs import fleet, sent
from tests.service import service

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benches.goals.effort import Effort
    from benches.harness.servers import Driven

# The last 4 MiB of the log are not compacted, half a million rows: few beside so many.
_BODIES_MIN = 4_000

_SENT = ((sent.ONWARD, "a fleet"), (sent.TRUCKS, "trucks"))


class Writing:
    """Parses and commits bodies in this process, where nothing else happens."""

    def __init__(
        self, name: str, bodies: Sequence[bytes], records: int = fleet.BODY_RECORDS
    ) -> None:
        self._plane = new_plane(f"writing-{name}")
        self._bodies, self._records = bodies, records
        is_json = bodies[0].startswith(b"[")
        self._write_one = self._plane.write_json if is_json else self._plane.write_protobuf
        self._seconds: list[float] = []
        self._write()  # their names

    def _write(self) -> None:
        for body in self._bodies:
            self._write_one(body, batch_records_max=self._records)

    def measure(self) -> None:
        """CPU of all bodies once more."""
        self._seconds.append(cpu_seconds(self._write) / len(self._bodies))

    def block_bytes(self) -> int:
        """Bytes that a body takes in the log."""
        stats = self._plane.stats()
        return stats.log_bytes // stats.batches

    def seconds_per_thousand(self) -> float:
        """CPU seconds, the median of all that was measured."""
        return statistics.median(self._seconds) / self._records * 1_000


def compaction_line(name: str, driven: Driven, writing: Writing) -> Line:
    """The CPU of the maintenance process from the first record to its rest."""
    records = driven.requests * fleet.BODY_RECORDS
    return Line.at_most(
        f"compaction of {name}, CPU per thousand records",
        driven.compaction_cpu_seconds() / records * 1_000,
        "parse + commit of the same",
        writing.seconds_per_thousand(),
        0.5,
    )


def finishing_seconds(tenant: str) -> float:
    """CPU seconds that finishing all days of a tenant takes, which the service puts off.

    It waits until nothing of a day has come for two hours.
    """

    def compact() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        service.command(DATA / "service", "compact", tenant)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    finishing = compact()
    return finishing - compact()  # less a start of the command, which finds nothing to do


def compaction_lines(effort: Effort, running: service.Service, keys: dict[str, str]) -> list[Line]:
    """Compaction of what goes on and of what comes out of order, while it comes."""
    lines = []
    for sent_as, name in _SENT:
        writing = Writing(sent_as, sent.SENT[sent_as]().bodies)
        driven = http_driven(running.process.pid, running.address, keys[sent_as], sent_as)
        before = driven.compaction_bytes()
        rounds = 0
        while rounds < effort.drive_rounds or driven.requests < _BODIES_MIN:
            driven.drive(CONNECTIONS, effort.drive_seconds)
            writing.measure()
            rounds += 1
        lines.append(compaction_line(name, driven, writing))
        written = driven.compaction_bytes() - before
        written /= driven.requests * fleet.BODY_RECORDS
        lines.append(Line("device bytes that this writes for each of them", f"{written:.1f} B"))
        a_thousand = driven.requests * fleet.BODY_RECORDS / 1_000
        finishing = finishing_seconds(sent_as) / a_thousand
        lines.append(Line("CPU per thousand of them later, finishing days", ms(finishing)))
        driven.close()
    return lines
