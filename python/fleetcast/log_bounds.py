"""A bound on the lines of the log that clients without a good key cause.

A request without a good key costs a client less than its line costs the disk. A client therefore
causes at most ten lines a second, and one line with the number of the rest. Metrics count all
requests. Example: of 500 refused requests of a client in a second, 10 get a line each, and one more
line says 490.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CLIENT_LINES_MAX = 10
"""Lines of one client in a second."""
PROCESS_LINES_MAX = 100
"""Lines of all clients of a process in a second."""
_CLIENTS_MAX = 1000  # counted by name; the other clients share one number
_OTHERS = "others"
_WINDOW_SECONDS = 1.0


class LineBound:
    """Decides which lines are written, and counts the lines left out. Safe between threads.

    `tell` is called at most once a second for each client that lost lines, with their number.
    """

    def __init__(
        self, tell: Callable[[str, int], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self._telling = threading.Lock()
        self._until = 0.0
        self._total = 0
        self._written: dict[str, int] = {}
        self._left_out: dict[str, int] = {}

    def admits(self, client: str) -> bool:
        """Returns true if a line about `client` is to be written; else counts it as left out."""
        with self._lock:
            now = self._clock()
            if now >= self._until:
                self._until = now + _WINDOW_SECONDS
                self._total = 0
                self._written.clear()
            written = self._written.get(client, 0)
            if written < CLIENT_LINES_MAX and self._total < PROCESS_LINES_MAX:
                self._written[client] = written + 1
                self._total += 1
                return True
            if not self._left_out:
                timer = threading.Timer(_WINDOW_SECONDS, self.flush)
                timer.daemon = True
                timer.start()
            is_named = client in self._left_out or len(self._left_out) < _CLIENTS_MAX
            name = client if is_named else _OTHERS
            self._left_out[name] = self._left_out.get(name, 0) + 1
            return False

    def flush(self) -> None:
        """Tells the numbers of lines left out. Returns when any thread has told all of them."""
        with self._telling:
            with self._lock:
                left_out, self._left_out = self._left_out, {}
            ordered = sorted(left_out.items(), key=lambda item: -item[1])
            for client, lines in ordered[:CLIENT_LINES_MAX]:
                self._tell(client, lines)
            rest = sum(lines for _, lines in ordered[CLIENT_LINES_MAX:])
            if rest:
                self._tell(_OTHERS, rest)
