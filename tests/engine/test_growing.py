"""F12 the other way round: a plane that only grows stays open, however many look at it."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from fleetcast.engine import Engine

THREADS = 6
GROWTHS = 40_000


@pytest.fixture
def hasty_threads():
    """Threads take turns so often that any two steps may have another thread's between them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_a_plane_that_grows_under_many_threads_is_never_opened_anew(tmp_path):
    """A length learnt early must not make one learnt late look like a file cut short."""
    engine = Engine(tmp_path, bytes(32))
    engine.create_plane("a1")
    first = engine.plane("a1", "acme")
    path = tmp_path / "a1" / "plane.mdb"
    done = threading.Event()

    def look():
        while not done.is_set():
            engine.plane("a1", "acme")

    threads = [threading.Thread(target=look) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    size = path.stat().st_size
    for growth in range(GROWTHS):
        os.truncate(path, size + growth + 1)
    done.set()
    for thread in threads:
        thread.join()
    first.ping()  # it was never closed
    assert first.stats().rows == 0
    engine.close()
