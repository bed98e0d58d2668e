"""A queue in which owners take turns, so that nobody waits behind another's backlog.

Each owner has lanes of waiting items, and every lane that has some is served one item a turn. How
many items of one owner are under way at once is its share of the threads, so those who are slow, or
stuck in their own store, leave threads to the others.
"""

from __future__ import annotations

import threading
from collections import deque
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from fleetcast.surface.shares import Share

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Lane(NamedTuple):
    """Items of one owner that are served in the order in which they came."""

    owner: str
    kind: str = ""


def _always(_lane: Lane, _item: object) -> bool:
    return True


class FairQueue(Generic[T]):
    """Items that wait for one of `2 * owner_max` threads, of which one owner gets `owner_max`.

    `starts` is the last question before an item is served; while it says no, its lane waits, and
    `retry` asks again. Safe to share between threads.
    """

    def __init__(self, owner_max: int, starts: Callable[[Lane, T], bool] = _always) -> None:
        self.threads_max = 2 * owner_max
        self._starts = starts
        self._lanes: dict[Lane, deque[T]] = {}
        self._under_way = Share()
        self._lock = threading.Lock()
        # A token for each waiting item: threads wait on it without the interpreter's help. A token
        # whose taker found nothing that may start is parked.
        self._tokens: SimpleQueue[None] = SimpleQueue()
        self._parked = 0
        self._waiting = 0
        self._closed = False

    def put(self, lane: Lane, item: T) -> None:
        """Adds an item at the end of its lane."""
        with self._lock:
            self._lanes.setdefault(lane, deque()).append(item)
            self._waiting += 1
        self._tokens.put(None)

    def get(self) -> tuple[Lane, T] | None:
        """Waits for the next item; `None` when all is closed and done. `done` must follow."""
        while True:
            self._tokens.get()
            with self._lock:
                lane = next(filter(self._takes, self._lanes), None)
                if lane is not None:
                    return lane, self._next(lane)
                if self._closed and not self._waiting:
                    break
                # An item that was withdrawn leaves a token too many.
                self._parked = min(self._parked + 1, self._waiting)
        self._tokens.put(None)  # the next thread ends as well
        return None

    def move(self, lane: Lane, owner: str) -> bool:
        """Has what `get` began in `lane` count for another owner, unless that has its share."""
        if not self._under_way.take(owner, 1, self.threads_max + 1):  # this thread counts twice
            return False
        self.done(lane)
        return True

    def done(self, lane: Lane) -> None:
        """Ends what `get` began."""
        self._under_way.give(lane.owner, 1)
        with self._lock:
            if self._parked:
                self._parked -= 1  # one thread has become free, so one more item may start
            elif not self._closed:
                return
        self._tokens.put(None)

    def retry(self) -> None:
        """Looks again at what could not start, at as much as there are threads for."""
        with self._lock:
            again = min(self._parked, self.threads_max)
            self._parked -= again
        for _ in range(again):
            self._tokens.put(None)

    def withdraw(self, lane: Lane, which: Callable[[T], bool]) -> list[T]:
        """Takes items out of a lane, from its beginning on as long as `which` holds."""
        taken: list[T] = []
        with self._lock:
            items = self._lanes.get(lane, deque())
            while items and which(items[0]):
                taken.append(items.popleft())
            if not items:
                self._lanes.pop(lane, None)
            self._waiting -= len(taken)
            self._parked = min(self._parked, self._waiting)
        return taken

    def lanes(self) -> list[Lane]:
        """All lanes in which something waits."""
        with self._lock:
            return list(self._lanes)

    def __len__(self) -> int:
        """Count of the items that wait."""
        return self._waiting

    def close(self) -> None:
        """Has every thread end as soon as nothing waits."""
        with self._lock:
            self._closed = True
        self._tokens.put(None)

    def _takes(self, lane: Lane) -> bool:
        if not self._under_way.take(lane.owner, 1, self.threads_max):
            return False
        if self._starts(lane, self._lanes[lane][0]):
            return True
        self._under_way.give(lane.owner, 1)
        return False

    def _next(self, lane: Lane) -> T:
        self._waiting -= 1
        items = self._lanes.pop(lane)
        item = items.popleft()
        if items:
            self._lanes[lane] = items  # behind all others now
        return item
