"""Requests of one worker that wait for a thread, and what their tenants hold of it (N6).

Owners take turns at the threads (`fleetcast.turns`). What is more than an owner's share is not
dropped: it has a turn of its own, in which the application refuses it, with all that an answer
needs. A read waits while its tenant holds too many bytes of answers that its clients have not
taken, and is refused where that lasts; clients that read at all make room before.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleetcast.http.framing import METHODS_WITH_BODY
from fleetcast.http.shares import Holding, Owners
from fleetcast.shares import Share
from fleetcast.turns import Lane, Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fleetcast.http.connection import Connection
    from fleetcast.http.limits import Limits

_READ, _WRITE = "read", "write"
_OVER_SHARE = "over share"  # owns the turns in which requests are refused; no account, no address
_STALLED_SECONDS = 1.0


class Waiting:
    """The queue between the loop and `2 * threads` threads. Safe to share between threads."""

    def __init__(self, threads: int, limits: Callable[[], Limits]) -> None:
        self._limits = limits
        self._owners = Owners()
        self._requests = Share()
        self._body_bytes = Share()
        self._unsent_bytes = Share()
        self._turns: Turns[Connection] = Turns(threads, self._may_start)
        self.threads_max = self._turns.threads_max
        self.close = self._turns.close

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers that clients have not taken."""
        return self._unsent_bytes.total

    def __len__(self) -> int:
        """Requests that wait for a thread."""
        return len(self._turns)

    def put(self, connection: Connection) -> None:
        """Queues a request whose head is whole."""
        connection.queued_at = time.monotonic()
        self._queue(connection)

    def get(self) -> Connection | None:
        """Waits for the next connection to be served; `None` ends the thread."""
        turn = self._turns.get()
        if turn is None:
            return None
        lane, connection = turn
        connection.lane = lane
        return connection

    def done(self, connection: Connection) -> None:
        """Ends what `get` began."""
        self._turns.done(connection.lane)
        if connection.lane.owner != _OVER_SHARE:
            self._requests.give(connection.lane.owner, 1)

    def claim(self, connection: Connection, account_id: str) -> bool:
        """Counts a request for the account that its key is of; false where that is too much.

        A key that is new counted for its address so far, and so does what waits beside it: that is
        queued anew, as there may be more of the account.
        """
        lane, connection.owner = connection.lane, account_id
        if lane.owner in {account_id, _OVER_SHARE}:
            return True
        if self._owners.learn(connection, account_id):
            for kind in (_READ, _WRITE):
                for each in self._turns.withdraw(Lane(lane.owner, kind), lambda _each: True):
                    self._requests.give(lane.owner, 1)
                    self._queue(each)
        if not self._turns.move(lane, account_id):
            return False
        self._requests.give(lane.owner, 1)
        self._requests.add(account_id, 1)
        connection.lane = Lane(account_id, lane.kind)
        return True

    def admit(self, connection: Connection) -> bool:
        """Whether the body that is due fits into the owner's share, which it then takes."""
        assert connection.head is not None  # noqa: S101 - a body is due only after a head
        amount = connection.head.body_bytes
        most = self._limits().body_bytes_under_way_max
        if not self._body_bytes.take(connection.owner, amount, most):
            return False
        connection.body_held = Holding(self._body_bytes, connection.owner, amount)
        return True

    def hold_unsent(self, connection: Connection) -> None:
        """Counts what the client has not taken at once."""
        owner, amount = connection.owner, connection.unsent_bytes
        self._unsent_bytes.add(owner, amount)
        connection.unsent_held = Holding(self._unsent_bytes, owner, amount, self._freed)

    def sweep(self, now: float, connections: Iterable[Connection]) -> Iterator[Connection]:
        """Refuses reads that have waited too long, and names connections that are to be closed."""
        since = now - self._limits().unsent_wait_seconds
        for lane in self._turns.lanes():
            if not self._may_start(lane):
                for each in self._turns.withdraw(lane, lambda one: one.queued_at <= since):
                    self._requests.give(lane.owner, 1)
                    self._refuse(each)
        return self._stalled(now, connections)

    def _stalled(self, now: float, connections: Iterable[Connection]) -> Iterator[Connection]:
        """Those who take nothing of their answers while these are too many, worst tenants first.

        A tenant that holds no more than its equal part of the bound loses none.
        """
        most = self._limits().unsent_bytes_max
        if self.unsent_bytes <= most:
            return
        holding = [each for each in connections if each.unsent_held is not None]
        fair = most / max(len({each.owner for each in holding}), 1)
        stalled = [
            each
            for each in holding
            if each.taken_at <= now - _STALLED_SECONDS
            and self._unsent_bytes.held(each.owner) > fair
        ]
        stalled.sort(key=lambda each: (-self._unsent_bytes.held(each.owner), each.taken_at))
        for each in stalled:
            if self.unsent_bytes <= most:
                return
            yield each

    def _queue(self, connection: Connection) -> None:
        assert connection.head is not None  # noqa: S101 - only whole heads are queued
        owner = connection.owner = self._owners.of(connection)
        if self._requests.take(owner, 1, self._limits().connections_max):
            kind = _WRITE if connection.head.told.method in METHODS_WITH_BODY else _READ
            self._turns.put(Lane(owner, kind), connection)
        else:
            self._refuse(connection)

    def _refuse(self, connection: Connection) -> None:
        connection.over_share = True
        self._turns.put(Lane(_OVER_SHARE, connection.owner), connection)

    def _may_start(self, lane: Lane) -> bool:
        if lane.kind != _READ:
            return True
        held = self._unsent_bytes.held(lane.owner)
        return held < self._limits().unsent_bytes_per_tenant_max

    def _freed(self, owner: str, amount: int) -> None:
        held = self._unsent_bytes.held(owner)
        if held < self._limits().unsent_bytes_per_tenant_max <= held + amount:
            self._turns.retry()
