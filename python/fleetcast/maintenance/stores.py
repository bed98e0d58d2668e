"""Compaction and retention of every tenant's store while the store is served.

Tenants are independent. An exception during the upkeep of a store is that tenant's failure, also a
panic of the engine or a lack of memory. The failure is logged, shown by the metrics and by
`/readyz`, and tried again after a longer pause each time. The other tenants are not affected. Two
stores are maintained at once, so that a long compaction does not delay all other stores.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.engine import Tenant, is_clock_believed
from fleetcast.errors import StoreUnreachable
from fleetcast.maintenance.upkeep import Moment, Upkeep
from fleetcast.metrics import sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.accounts import ControlStore
    from fleetcast.engine import Engine, Plane
    from fleetcast.maintenance.crash_notes import CrashNotes
    from fleetcast.metrics import Counters

_AT_ONCE = 2
# After a start with thousands of tenants, the stores are read and opened over several rounds.
_NEW_PER_ROUND_MAX = 200
_UNREAD_PER_ROUND_MAX = 20
_STEP_SECONDS = 60.0  # time services make smaller steps, which delay upkeep little
_NS_PER_SECOND = 1_000_000_000

logger = logging.getLogger(__name__)


class Maintenance:
    """Upkeep of the stores of all tenants. `after_seconds` returns how old a log may get.

    `prefers` returns true if this node comes first for an account. Every other node begins
    upkeep a minute later than that node should have, so that a plane is in the memory of one node
    only. The store's lock lets one node work at a time. `clock` gives seconds of a clock that
    cannot be set, `wall` gives seconds since 1970. Close the object to wait for upkeep that is
    under way.
    """

    def __init__(
        self,
        store: ControlStore,
        engine: Engine,
        counters: Counters,
        after_seconds: Callable[[], int],
        crash_notes: CrashNotes,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        prefers: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._store = store
        self._prefers = prefers
        self._engine = engine
        self._counters = counters
        self._after_seconds = after_seconds
        self._crash_notes = crash_notes
        self._clock = clock
        self._wall = wall
        self._ahead = wall() - clock()
        self._written = counters.counter(sample("fleetcast_compaction_bytes_total"))
        self._failed = counters.counter(sample("fleetcast_compaction_failed_total"))
        self._progress = counters.gauge(sample("fleetcast_upkeep_progress_time_seconds"))
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="upkeep")
        self._lock = threading.Lock()
        self._known: dict[str, Upkeep] = {}
        self._running: set[str] = set()
        self._progressed()

    def begin_due(self, lives: Callable[[], None] = lambda: None) -> list[Future[None]]:
        """Begins the upkeep that is due and not under way, and returns its futures.

        `lives` is called each second in the meantime, because the database of a cluster may take
        minutes to answer.
        """
        try:
            tenants = self._store.tenants()
        except ControlStoreUnavailable as error:
            logger.warning("maintenance waits", extra={"problem": str(error)})
            return []
        self._forget({tenant.account_id for tenant in tenants})
        at, after_seconds = self._moment(), self._after_seconds()
        self._notice_step(at)
        due, new, unread, lived_at = [], 0, 0, at.now
        for tenant in tenants:
            if self._clock() - lived_at >= 1.0:
                lived_at = self._clock()
                lives()
            upkeep = self._known.get(tenant.account_id)
            if upkeep is None:
                if new == _NEW_PER_ROUND_MAX:
                    continue
                new += 1
                upkeep = self._known[tenant.account_id] = self._first_look(tenant, at.now)
            if tenant.account_id in self._running:
                continue
            prefers = self._prefers(tenant.account_id)
            if upkeep.is_due(tenant, at, after_seconds, prefers=prefers):
                due.append(tenant)
            elif upkeep.is_unread and unread < _UNREAD_PER_ROUND_MAX:
                unread += 1
                due.append(tenant)
        due = self._one_suspect(due)
        with self._lock:
            self._running |= {tenant.account_id for tenant in due}
            idle = not self._running
        if idle:
            self._progressed()
        return [self._pool.submit(self._maintain, tenant) for tenant in due]

    def close(self) -> None:
        """Begins no more upkeep, and waits for the upkeep under way."""
        self._pool.shutdown(cancel_futures=True)

    def _moment(self) -> Moment:
        return Moment(self._clock(), self._wall())

    def _notice_step(self, at: Moment) -> None:
        """Looks at all stores again, a few at a time, after a step of the wall clock."""
        is_clock_believed()  # the engine must see the clock even when no upkeep is due
        step = at.wall - at.now - self._ahead
        self._ahead += step
        if abs(step) > _STEP_SECONDS:
            logger.warning("the clock has stepped", extra={"seconds": round(step)})
            for upkeep in self._known.values():
                upkeep.note_step()

    def _one_suspect(self, due: list[Tenant]) -> list[Tenant]:
        """Returns `due` with only one of the tenants that may have ended the process.

        The least suspect tenant stays. So tenants whose upkeep was merely under way at the same
        time are told from the tenant that ended the process.
        """
        crashes = {
            tenant.account_id: self._crash_notes.crashes(tenant.account_id) for tenant in due
        }
        suspects = sorted(
            (tenant for tenant in due if crashes[tenant.account_id]),
            key=lambda tenant: crashes[tenant.account_id],
        )
        with self._lock:
            busy = any(self._crash_notes.crashes(account_id) for account_id in self._running)
        others = [tenant for tenant in due if not crashes[tenant.account_id]]
        return others + suspects[: 0 if busy else 1]

    def _forget(self, known: set[str]) -> None:
        """Closes the planes of tenants that are gone, and forgets their upkeep."""
        for account_id in self._known.keys() - known - self._running:
            self._engine.release(account_id)
            self._crash_notes.forget(account_id)
            self._end_gauges(self._known.pop(account_id))

    def _end_gauges(self, upkeep: Upkeep) -> None:
        """Shows 0 for a tenant that is gone, which neither fails nor holds rows."""
        shown = {
            "fleetcast_tenant_expiry_held": upkeep.held > 0,
            "fleetcast_tenant_clock_lead_seconds": upkeep.lead_seconds > 0,
            "fleetcast_upkeep_failing": upkeep.failing_since is not None,
            "fleetcast_upkeep_failing_since_time_seconds": upkeep.failing_since is not None,
        }
        for family in (family for family, is_shown in shown.items() if is_shown):
            self._counters.put(self._counters.gauge(sample(family, tenant=upkeep.tenant_name)), 0)

    def _first_look(self, tenant: Tenant, now: float) -> Upkeep:
        upkeep = Upkeep(self._engine.glance(tenant.account_id), tenant)
        crashes = self._crash_notes.crashes(tenant.account_id)
        if crashes:
            seconds = upkeep.note_failure(now, times=crashes)
            self._show(tenant, upkeep)
            logger.warning(
                "compaction ended the process",
                extra={"tenant": tenant.name, "times": crashes, "retry_in_seconds": seconds},
            )
        return upkeep

    def _maintain(self, tenant: Tenant) -> None:
        upkeep = self._known[tenant.account_id]
        try:
            with self._crash_notes.noted(tenant.account_id):
                recovered = self._perform(tenant, upkeep)
        except BaseException as error:  # noqa: BLE001 - a panic of the engine is no Exception
            self._note_failure(tenant, upkeep, error)
        else:
            if recovered:
                self._show(tenant, upkeep)
                logger.info("upkeep goes on", extra={"tenant": tenant.name})
        finally:
            with self._lock:
                self._running.discard(tenant.account_id)
            self._progressed()

    def _perform(self, tenant: Tenant, upkeep: Upkeep) -> bool:
        """Does the upkeep that is due, and notes the next; returns true if it failed before."""
        plane = self._engine.plane(tenant.account_id, tenant.name)
        after_seconds = self._after_seconds()
        if not self._mend_retention(tenant, plane):
            held = self._compact(tenant, plane, after_seconds)
            if held is not None:
                self._note_held(tenant, upkeep, held)
        at = self._moment()
        now_ns = int(at.wall * _NS_PER_SECOND)
        self._note_lead(tenant, upkeep, plane.ingest_lead_ns(now_ns=now_ns) // _NS_PER_SECOND)
        upcoming = plane.upcoming(after_seconds=after_seconds, now_ns=now_ns)
        return upkeep.note_success(upcoming, at, is_held=upkeep.held > 0)

    def _compact(self, tenant: Tenant, plane: Plane, after_seconds: int) -> int | None:
        """Compacts; returns the segments with rows that only a doubtful clock keeps (O2).

        Returns `None` if another process is compacting.
        """
        done = plane.compact(
            after_seconds=after_seconds,
            now_ns=int(self._wall() * _NS_PER_SECOND),
            trust_clock=is_clock_believed(),
        )
        if done is None:
            return None
        if done.bytes_written + done.expired + done.purged:
            self._counters.add(self._written, done.bytes_written)
            logger.info(
                "compacted",
                extra={
                    "tenant": tenant.name,
                    "blocks": done.blocks,
                    "merged": done.merged,
                    "expired": done.expired,
                    "purged": done.purged,
                    "bytes_written": done.bytes_written,
                },
            )
        return done.held

    def _mend_retention(self, tenant: Tenant, plane: Plane) -> bool:
        """Gives a store the retention of its tenant's record; returns true if the two differed.

        The two differ if the store was restored, if a change was cut short, or while a change is
        made. So the record is read again, and no rows are removed before the two agree.
        """
        with self._store.read() as view:
            current = Tenant.get(view, tenant.name)
        if current is None or current.account_id != tenant.account_id:
            return True  # the tenant is being deleted
        if plane.upcoming().retention_seconds == current.retention_seconds:
            return False
        plane.set_retention(current.retention_seconds)
        return True

    def _note_held(self, tenant: Tenant, upkeep: Upkeep, held: int) -> None:
        if bool(held) != bool(upkeep.held):
            name = sample("fleetcast_tenant_expiry_held", tenant=tenant.name)
            self._counters.put(self._counters.gauge(name), int(held > 0))
            if held:
                logger.warning(
                    "nothing expires: the clock is more than a day ahead of the newest write, "
                    "and has not gone on for an hour",
                    extra={"tenant": tenant.name, "segments": held},
                )
            else:
                logger.info("expiry goes on", extra={"tenant": tenant.name})
        upkeep.held = held

    def _note_lead(self, tenant: Tenant, upkeep: Upkeep, seconds: int) -> None:
        if seconds or upkeep.lead_seconds:
            name = sample("fleetcast_tenant_clock_lead_seconds", tenant=tenant.name)
            self._counters.put(self._counters.gauge(name), seconds)
        if upkeep.note_lead(seconds, self._clock()):
            logger.warning(
                "a write lies ahead of the clock",
                extra={"tenant": tenant.name, "lead_seconds": seconds},
            )

    def _note_failure(self, tenant: Tenant, upkeep: Upkeep, error: BaseException) -> None:
        seconds = upkeep.note_failure(self._clock())
        self._counters.add(self._failed)
        self._show(tenant, upkeep)
        logger.warning(
            "compaction failed",
            extra={"tenant": tenant.name, "problem": repr(error), "retry_in_seconds": seconds},
        )
        if not isinstance(error, StoreUnreachable):
            self._engine.release(tenant.account_id)

    def _show(self, tenant: Tenant, upkeep: Upkeep) -> None:
        """Shows in the metrics since when the upkeep fails, or that it does not fail."""
        since = upkeep.failing_since
        at = self._moment()
        failing = self._counters.gauge(sample("fleetcast_upkeep_failing", tenant=tenant.name))
        begin = self._counters.gauge(
            sample("fleetcast_upkeep_failing_since_time_seconds", tenant=tenant.name)
        )
        self._counters.put(failing, int(since is not None))
        self._counters.put(begin, 0 if since is None else int(at.wall - (at.now - since)))

    def _progressed(self) -> None:
        self._counters.put(self._progress, int(self._wall()))
