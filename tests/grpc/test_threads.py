"""L19, L27: jobs beside the event loop of a gRPC process."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fleetcast.grpc.threads import Threads

MOST = 3


def test_as_many_jobs_at_once_as_there_may_be_threads():
    threads, all_there = Threads(MOST), threading.Barrier(MOST)

    async def run():
        # Each waits for the others, so fewer threads would never end.
        return await asyncio.gather(*(threads.run("a", all_there.wait) for _ in range(4 * MOST)))

    indices = asyncio.run(run())
    threads.close()
    assert sorted(indices) == sorted([*range(MOST)] * 4)


def test_what_a_job_raises_is_told_to_who_waits():
    threads = Threads(MOST)

    async def run():
        with pytest.raises(ZeroDivisionError):
            await threads.run("a", lambda: 1 // 0)
        return await threads.run("a", lambda: "went on")

    assert asyncio.run(run()) == "went on"
    threads.close()


def test_a_job_is_done_whoever_waits_for_it():  # L27
    threads, done = Threads(1), []
    begun, may_end = threading.Event(), threading.Event()

    def job():
        begun.set()
        may_end.wait()
        done.append("first")

    async def run():
        first = threads.run("a", job)
        second = threads.run("a", lambda: done.append("second"))
        await asyncio.to_thread(begun.wait)
        first.cancel()
        second.cancel()
        may_end.set()
        threads.close()

    asyncio.run(run())
    assert done == ["first", "second"]
