"""Requests of one worker that wait for a thread, and what their tenants hold of it.

Owners take turns at the threads (`surface/fair_queue.py`). A request beyond its owner's share is
not dropped: it has a turn of its own, in which the application refuses it, with all that an answer
needs.

Answers that clients have not taken are bounded as well. A read waits as long as its answer would
take its tenant past the bound, and is refused where that lasts; clients that read make room before.
How large an answer will be is guessed from the last one, so that small reads go on beside large
ones that nobody takes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleetcast.http.server.framing import METHODS_WITH_BODY
from fleetcast.http.server.holding import Holding
from fleetcast.surface.fair_queue import FairQueue, Lane
from fleetcast.surface.shares import KeyOwners, Share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fleetcast.http.server.connection import Connection
    from fleetcast.http.server.limits import ConnectionLimits

_WRITE, _SMALL_READ, _LARGE_READ = "write", "small read", "large read"
_OVER_SHARE = "over share"  # owns the turns in which requests are refused; no account, no address
_STALLED_SECONDS = 1.0
_SMALL_BYTES_MAX = 1_048_576
_SIZES_MAX = 65_536  # answers whose size is remembered


class RequestQueue:
    """The queue between the loop and `2 * threads` threads. Safe to share between threads."""

    def __init__(self, threads: int, limits: Callable[[], ConnectionLimits]) -> None:
        self._limits = limits
        self._owners = KeyOwners()
        self._under_way = Share()
        self._body_bytes = Share()
        self._unsent_bytes = Share()
        self._sizes: dict[int, int] = {}
        self._queue: FairQueue[Connection] = FairQueue(threads, self._starts)
        self.threads_max = self._queue.threads_max
        self.close = self._queue.close

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers that clients have not taken, and of answers under way."""
        return self._unsent_bytes.total

    def __len__(self) -> int:
        """Requests that wait for a thread."""
        return len(self._queue)

    def put(self, connection: Connection) -> None:
        """Queues a request whose head is whole."""
        connection.queued_at = time.monotonic()
        self._enqueue(connection)

    def get(self) -> Connection | None:
        """Waits for the next connection to be served; `None` ends the thread."""
        turn = self._queue.get()
        if turn is None:
            return None
        lane, connection = turn
        connection.lane = lane
        return connection

    def done(self, connection: Connection) -> None:
        """Ends what `get` began."""
        self._queue.done(connection.lane)
        if connection.lane.owner != _OVER_SHARE:
            self._under_way.give(connection.lane.owner, 1)

    def claim(self, connection: Connection, account_id: str) -> bool:
        """Counts a request for the account that its key is of; false where that is too much.

        A key that is new counted for its address so far, and so does what waits beside it: that is
        queued anew, as there may be more of the account.
        """
        lane, connection.owner = connection.lane, account_id
        if lane.owner in {account_id, _OVER_SHARE}:
            return True
        if self._owners.learn(_key(connection), account_id):
            for kind in (_WRITE, _SMALL_READ, _LARGE_READ):
                for each in self._queue.withdraw(Lane(lane.owner, kind), lambda _each: True):
                    self._under_way.give(lane.owner, 1)
                    self._enqueue(each)
        if not self._queue.move(lane, account_id):
            return False
        self._under_way.give(lane.owner, 1)
        self._under_way.add(account_id, 1)
        if connection.unsent_held is not None:
            connection.unsent_held.move(account_id)
        connection.lane = Lane(account_id, lane.kind)
        return True

    def admit(self, connection: Connection) -> bool:
        """Takes a part of the owner's share for the body that is due, if it fits."""
        assert connection.request is not None  # noqa: S101 - a body is due only after a head
        amount = connection.request.body_bytes
        bound = self._limits().body_bytes_under_way_max
        if not self._body_bytes.take(connection.owner, amount, bound):
            return False
        connection.body_held = Holding(self._body_bytes, connection.owner, amount)
        return True

    def note_size(self, connection: Connection, size_bytes: int) -> None:
        """Remembers how large an answer has become, before the request is forgotten.

        A larger one before is not forgotten at once: the same path may be asked for less. A large
        one counts before any of it is sent: its first byte may be followed by the next request.
        """
        if connection.over_share:
            return
        if len(self._sizes) >= _SIZES_MAX:
            self._sizes.clear()
        question = _question(connection)
        self._sizes[question] = max(size_bytes, self._sizes.get(question, 0) * 3 // 4)
        if size_bytes > _SMALL_BYTES_MAX:
            self._hold(connection, size_bytes)

    def hold_unsent(self, connection: Connection) -> None:
        """Counts what the client has not taken at once."""
        self._hold(connection, connection.unsent_bytes)

    def _hold(self, connection: Connection, amount: int) -> None:
        """Counts so much of an answer, instead of the amount guessed or counted before."""
        before = connection.unsent_held
        connection.unsent_held = self._held(connection.owner, amount) if amount else None
        if before is not None:
            before.give_all()

    def sweep(self, now: float, connections: Iterable[Connection]) -> Iterator[Connection]:
        """Refuses reads that have waited too long, and names connections that are to be closed."""
        since = now - self._limits().unsent_wait_seconds

        def overdue(connection: Connection) -> bool:
            return connection.queued_at <= since and not self._fits(connection.owner, connection)

        for lane in self._queue.lanes():
            if lane.kind in {_SMALL_READ, _LARGE_READ}:
                for each in self._queue.withdraw(lane, overdue):
                    self._under_way.give(lane.owner, 1)
                    self._refuse(each)
        self._queue.retry()
        return self._stalled(now, connections)

    def _stalled(self, now: float, connections: Iterable[Connection]) -> Iterator[Connection]:
        """Connections that take nothing of too many unsent bytes, worst tenants first.

        A tenant that holds no more than its equal part of the bound loses none.
        """
        bound = self._limits().unsent_bytes_max
        if self.unsent_bytes <= bound:
            return
        holding = [each for each in connections if each.unsent_held is not None]
        fair = bound / max(len({each.owner for each in holding}), 1)
        stalled = [
            each
            for each in holding
            if each.taken_at <= now - _STALLED_SECONDS
            and self._unsent_bytes.held(each.owner) > fair
        ]
        stalled.sort(key=lambda each: (-self._unsent_bytes.held(each.owner), each.taken_at))
        for each in stalled:
            if self.unsent_bytes <= bound:
                return
            yield each

    def _enqueue(self, connection: Connection) -> None:
        assert connection.request is not None  # noqa: S101 - only whole heads are queued
        owner = connection.owner = self._owners.of(_key(connection), connection.address)
        if not self._under_way.take(owner, 1, self._limits().connections_max):
            self._refuse(connection)
        elif connection.request.head.method in METHODS_WITH_BODY:
            self._queue.put(Lane(owner, _WRITE), connection)
        else:
            small = self._expected_bytes(connection) <= _SMALL_BYTES_MAX
            self._queue.put(Lane(owner, _SMALL_READ if small else _LARGE_READ), connection)

    def _refuse(self, connection: Connection) -> None:
        connection.over_share = True
        self._queue.put(Lane(_OVER_SHARE, connection.owner), connection)

    def _starts(self, lane: Lane, connection: Connection) -> bool:
        """Lets an answer be made, or not yet; a large one is counted from now on."""
        if lane.kind not in {_SMALL_READ, _LARGE_READ}:
            return True
        if not self._fits(lane.owner, connection):
            return False
        if lane.kind == _LARGE_READ:
            connection.unsent_held = self._held(lane.owner, self._expected_bytes(connection))
        return True

    def _fits(self, owner: str, connection: Connection) -> bool:
        held = self._unsent_bytes.held(owner)
        bound = self._limits().unsent_bytes_per_tenant_max
        return held == 0 or held + self._expected_bytes(connection) <= bound

    def _expected_bytes(self, connection: Connection) -> int:
        """The size of the last answer to the same; two unknown ones are all that is let in."""
        unknown = self._limits().unsent_bytes_per_tenant_max // 2
        return self._sizes.get(_question(connection), unknown)

    def _held(self, owner: str, amount: int) -> Holding:
        self._unsent_bytes.add(owner, amount)
        return Holding(self._unsent_bytes, owner, amount, self._queue.retry)


def _key(connection: Connection) -> str | None:
    assert connection.request is not None  # noqa: S101 - only whole heads are queued
    return connection.request.head.fields.get("HTTP_X_API_KEY")


def _question(connection: Connection) -> int:
    """A hash of the path and of its owner: a path may be long."""
    assert connection.request is not None  # noqa: S101 - only whole heads are queued
    return hash((connection.owner, connection.request.head.path))
