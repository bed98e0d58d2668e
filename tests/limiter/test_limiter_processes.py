"""The limiter between processes: exact counts, and nothing left behind by `kill -9`."""

import random
import subprocess
import sys
from collections import deque
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hammer import CLIENTS, RULES

from fleetcast.engine import LimiterFile

HAMMER = Path(__file__).with_name("hammer.py")
START_NS = 10**12
MINUTE_NS = 60 * 10**9


class Hammer:
    def __init__(self, path):
        self.process = subprocess.Popen(
            [sys.executable, str(HAMMER), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, now_ns, attempts):
        self.process.stdin.write(f"{now_ns} {attempts}\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().split()

    def kill(self):
        self.process.kill()
        with self.process:
            pass


@contextmanager
def hammers(path, count):
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(Hammer(path))
            stack.callback(made[-1].kill)
        for hammer in made:
            assert hammer.answer() == ["ready"]
        yield made


def admitted_in_round(workers, now_ns, attempts):
    for worker in workers:
        worker.tell(now_ns, attempts)
    answers = [worker.answer() for worker in workers]
    return [sum(map(int, counts)) for counts in zip(*answers, strict=True)]


def test_four_processes_admit_exactly_the_limit_of_any_minute(tmp_path):
    """B2, B6: three minutes of a told clock; the processes also make the file at once."""
    dice = random.Random(42)
    log = deque()  # instants of the rounds, once for each request admitted in them
    now_ns, rounds = START_NS, 0
    with hammers(tmp_path / "limiter", 4) as workers:
        while now_ns < START_NS + 3 * MINUTE_NS:
            while log and now_ns - log[0] >= MINUTE_NS:
                log.popleft()
            attempts = dice.randint(1, 3)
            expected = min(30 - len(log), 4 * attempts)
            counts = admitted_in_round(workers, now_ns, attempts)
            assert counts == [expected] * len(CLIENTS)
            log.extend([now_ns] * expected)
            now_ns += dice.randint(10**8, 5 * 10**9)
            rounds += 1
    assert rounds > 50


def test_a_killed_process_leaves_nothing_behind(tmp_path):
    """`kill -9` amid its calls: the others go on at once, and their counts stay right."""
    now_ns = START_NS
    with hammers(tmp_path / "limiter", 2) as workers:
        for _ in range(4):
            with hammers(tmp_path / "limiter", 4) as victims:
                for victim in victims:
                    victim.tell(now_ns, 0)
                assert [victim.answer() for victim in victims] == [["begun"]] * 4
                admitted = [0] * len(CLIENTS)
                for victim in victims:
                    # Asked while the victims hammer on; then one dies wherever it is.
                    counts = admitted_in_round(workers, now_ns, 20)
                    admitted = [a + b for a, b in zip(admitted, counts, strict=True)]
                    victim.kill()
                assert max(admitted) <= 30
            assert admitted_in_round(workers, now_ns, 20) == [0] * len(CLIENTS)
            # A minute later all is as if nothing had been: every client has its thirty.
            now_ns += MINUTE_NS + 10**9
            assert admitted_in_round(workers, now_ns, 20) == [30] * len(CLIENTS)
            now_ns += MINUTE_NS + 10**9


def test_a_child_opens_its_own(tmp_path):
    limiter = LimiterFile(tmp_path / "limiter", **RULES)
    assert limiter.admit("10.0.0.1") is None
    for _ in range(10):
        limiter.record_failure("10.0.0.1")
    assert limiter.lockout("::ffff:10.0.0.1") == 300
    with pytest.raises(OverflowError):
        LimiterFile(tmp_path / "limiter", **{**RULES, "lockout_seconds": -1})
