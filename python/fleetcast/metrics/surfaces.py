"""Counters of requests and records over HTTP and gRPC, each with one call when a request ends."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.metrics.counters import Counters, Histogram, label
from fleetcast.metrics.families import BUCKETS_SECONDS
from fleetcast.metrics.totals import Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleetcast.engine import WriteResult
    from fleetcast.metrics.shared import Shared

_USAGE = "usage "  # no metric: the name of a metric has no space
REFUSED = "refused "
"""Begins the name of a key's refusals: `refused SURFACE CODE TENANT KEY`, which is no metric."""
OTHER = "other"
"""The label of requests without a known route, so that clients cannot invent label values."""

logger = logging.getLogger(__name__)


class RequestIndexes(NamedTuple):
    """Indexes of the counters that one request changes."""

    in_flight: int
    counts: list[int]
    """Counters that each request raises by one."""
    seconds: Histogram


class WriteIndexes(NamedTuple):
    """Indexes of the counters that one batch changes."""

    accepted: int
    rejected: int
    clamped: int
    no_entity: int
    other_measurement: int
    commit_seconds: Histogram


class EngineAccounting(NamedTuple):
    """Everything that the engine needs to count and log the requests of one process."""

    process: str
    """The name of the process in logs."""
    counters: int
    """Descriptor of the memory of counters."""
    counters_bytes: int
    bounds_seconds: Sequence[float]
    """Upper bounds of histograms."""
    requests: Callable[
        [str, str, int | str, str | None, str | None, tuple[str, str] | None, bool], RequestIndexes
    ]
    writes: Callable[[str], WriteIndexes]
    cpu: Callable[[str], int]
    """Returns the index of the CPU time of a tenant."""
    answered: int | None
    """Index of the counter of all requests that the engine answered, if there is one."""


def engine_accounting(
    shared: Shared, process: str, requests: Requests, writes: Writes, answered: int | None = None
) -> EngineAccounting:
    """Returns the engine's accounting. `requests` and `writes` must use a row for themselves."""
    memory = shared.descriptor, shared.rows_bytes
    return EngineAccounting(
        process, *memory, BUCKETS_SECONDS, requests.indexes, writes.indexes, requests.cpu, answered
    )


class Requests:
    """The requests of one surface, `http` or `grpc`."""

    def __init__(self, counters: Counters, surface: str) -> None:
        self._counters = counters
        self._surface = surface
        self._prefix = f"fleetcast_{surface}"
        self.in_flight = counters.gauge(f"{self._prefix}_requests_in_flight")
        """Index of the gauge of requests under way."""
        self._over_share = label("fleetcast_refused_over_share_total", surface=surface)
        name = f"{self._prefix}_request_seconds"
        self._durations = cache(lambda route: Histogram(counters, name, route=route))

    def refusal(self, method: str, route: str, status: object, code: str) -> tuple[int, int]:
        """Indexes of a refusal before there was a request, which took no time."""
        return self._total(method, route, status), self._refused(code)

    def indexes(
        self,
        method: str,
        route: str,
        status: object,
        account_id: str | None,
        code: str | None,
        refused_key: tuple[str, str] | None,
        is_over_share: bool,  # noqa: FBT001 - the engine passes it by place
    ) -> RequestIndexes:
        """Indexes of a request that has its answer; `code` is the error code of an error.

        The request counts for the usage of `account_id`, if it came with a valid key, and an error
        for `refused_key`, which is the name of the tenant and the id of the key.
        """
        counts = [self._total(method, route, status)]
        if account_id is not None:
            counts.append(self._counters.counter(_USAGE + account_id))
        if code is not None:
            counts.append(self._refused(code))
            if refused_key is not None:
                counts += self._refused_key(code, *refused_key)
        if is_over_share:
            counts.append(self._counters.counter(self._over_share))
        return RequestIndexes(self.in_flight, counts, self._durations(route))

    def _refused_key(self, code: str, tenant: str, key_id: str) -> tuple[int, int]:
        name = label("fleetcast_tenant_refused_total", tenant=tenant, code=code)
        key = f"{REFUSED}{self._surface} {code} {tenant} {key_id}"
        return self._counters.counter(name), self._counters.keyed(key)

    def cpu(self, tenant: str) -> int:
        """Index of the nanoseconds of CPU time that a tenant has caused on this surface."""
        return self._counters.counter(label("fleetcast_tenant_cpu_seconds_total", tenant=tenant))

    def _total(self, method: str, route: str, status: object) -> int:
        name = f"{self._prefix}_requests_total"
        return self._counters.counter(label(name, method=method, route=route, status=status))

    def _refused(self, code: str) -> int:
        return self._counters.counter(label(f"{self._prefix}_refused_total", code=code))


class Writes:
    """Records that came in by one transport, `http` or `grpc`."""

    def __init__(self, counters: Counters, transport: str) -> None:
        self._counters = counters
        self._transport = transport
        self._commit = Histogram(counters, "fleetcast_commit_seconds")
        self._indexes: dict[str, WriteIndexes] = {}

    def stored(self, tenant: str, result: WriteResult) -> None:
        """Notes that a batch was committed."""
        *indexes, commit = self.indexes(tenant)
        counts = (
            result.accepted_count,
            len(result.rejected_indices),
            result.clamped_count,
            result.no_entity_count,
            result.other_measurement_count,
        )
        durations = commit.changes(result.commit_seconds)
        self._counters.add_all([*zip(indexes, counts, strict=True), *durations])

    def indexes(self, tenant: str) -> WriteIndexes:
        """Indexes for a caller that counts batches itself, as `stored` does."""
        known = self._indexes.get(tenant)
        if known is None:
            accepted, rejected, clamped = (
                self._counters.counter(
                    label(
                        f"fleetcast_records_{outcome}_total",
                        tenant=tenant,
                        transport=self._transport,
                    )
                )
                for outcome in ("accepted", "rejected", "clamped")
            )
            no_entity, other = (
                self._counters.counter(
                    label("fleetcast_unreadable_records_total", tenant=tenant, reason=reason)
                )
                for reason in ("no_entity", "measurement")
            )
            known = WriteIndexes(accepted, rejected, clamped, no_entity, other, self._commit)
            self._indexes[tenant] = known
        return known

    def tenant_full(self, tenant: str, bound: str) -> None:
        """Notes that a batch was refused, because its tenant would have passed a bound on names."""
        name = label("fleetcast_tenant_full_total", tenant=tenant, bound=bound)
        self._counters.add(self._counters.counter(name))
        logger.warning("a tenant is full", extra={"tenant": tenant, "bound": f"limits.{bound}"})


class AccountRequests:
    """Requests with a valid key in this run of the service, by account."""

    def __init__(self, shared: Shared) -> None:
        self._totals = Totals(shared, _USAGE)

    def of(self, account_id: str) -> int:
        """Requests of one account; the cost does not depend on the number of accounts."""
        return self._totals.of(_USAGE + account_id)

    def all(self) -> dict[str, int]:
        """Requests of all accounts that sent any."""
        return {name.removeprefix(_USAGE): count for name, count in self._totals.all().items()}
