"""The upkeep of many tenants: one that fails, fails alone."""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import sys
from concurrent.futures import wait
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from fleetcast.engine import encode_records
from fleetcast.metrics import Totals, sample

from .house import MASTER_KEY, RECORD, House
from .stopped_writer import stopped_writer

ROOT = Path(__file__).parents[2]


class Panic(BaseException):
    """As PyO3's: no `Exception`."""


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("failure", [Panic("bug"), MemoryError(), OSError(5, "disk")], ids=repr)
def test_tenants_behind_one_that_fails_are_compacted(house, failure):
    """A panic of one tenant's compaction ended the compaction of all."""
    house.write()
    house.engine.failure = failure
    house.engine.failing = frozenset({house.accounts["alpha"]})
    house.look()
    assert house.segments("beta", "gamma") == {"beta": 1, "gamma": 1}
    assert house.shown("fleetcast_upkeep_failing", "alpha") == 1
    assert house.shown("fleetcast_upkeep_failing", "beta") == 0
    assert house.shown("fleetcast_upkeep_failing_since_time_seconds", "alpha") == house.now
    house.engine.failing = frozenset()
    house.now += 300
    house.look()
    assert house.segments("alpha") == {"alpha": 1}
    assert house.shown("fleetcast_upkeep_failing", "alpha") == 0


ENDING = """
import os, sys
from pathlib import Path
from tests.maintenance.house import House

def end(account_id):
    if account_id == house.accounts["alpha"]:
        os._exit(1)

house = House(Path(sys.argv[1]))
house.engine.before_opening = end
house.look()
house.now += 1
house.look()
"""


def test_a_tenant_that_ends_the_process_does_so_less_and_less_often(house, tmp_path):
    """As a lack of memory does; those behind it in name order have their turn all the same."""
    house.write()
    command = [sys.executable, "-c", ENDING, str(tmp_path)]
    runs = [subprocess.run(command, cwd=ROOT, check=False) for _ in range(3)]
    assert [run.returncode for run in runs] == [1, 1, 0]
    notes = [path.stat().st_mode & 0o777 for path in (tmp_path / "under-way").iterdir()]
    assert notes == [0o600]
    assert house.segments("beta", "gamma") == {"beta": 1, "gamma": 1}
    house.close()
    after = House(tmp_path)
    after.look()
    assert after.shown("fleetcast_upkeep_failing", "alpha") == 1
    after.now += 300
    after.look()
    assert after.segments("alpha") == {"alpha": 1}
    assert after.shown("fleetcast_upkeep_failing", "alpha") == 0
    after.close()
    assert list((tmp_path / "under-way").iterdir()) == []


def test_a_failing_tenant_backs_off_and_its_retries_stay_bounded(house):
    house.write()
    house.engine.failure = Panic("bug")
    house.engine.failing = frozenset({house.accounts["alpha"]})
    start = house.now
    failed = sample("fleetcast_compaction_failed_total")
    tried_at = []
    for second in range(2_000):
        house.now = start + second
        before = Totals(house.counters.shared).of(failed)
        house.look()
        if Totals(house.counters.shared).of(failed) > before:
            tried_at.append(second)
    waits = [after - before for before, after in pairwise(tried_at)]
    assert waits[:4] == [1, 2, 4, 8]
    assert waits == sorted(waits)
    assert waits[-1] == 300


def test_a_store_that_hangs_delays_no_other(house, tmp_path):
    house.write()
    with stopped_writer(tmp_path / "planes" / house.accounts["alpha"], MASTER_KEY, "tables"):
        stuck, *others = house.maintenance.begin_due()
        wait(others)
        assert house.segments("beta", "gamma") == {"beta": 1, "gamma": 1}
        assert not stuck.done()
        assert house.maintenance.begin_due() == []
    stuck.result()
    house.look()  # the writer may have changed the retention, which is mended before all else
    assert house.segments("alpha") == {"alpha": 1}


def test_stores_at_rest_are_not_opened(house):
    """Every store was opened each second, and never closed."""
    assert house.look() == 0  # nobody has written
    house.write()
    assert house.look() == 3
    house.engine.close()
    for _ in range(3):
        house.now += 10_000
        assert house.look() == 0
    house.after_seconds = 60
    house.write()
    assert house.look() == 0
    house.now += 59
    assert house.look() == 0
    house.now += 1
    assert house.look() == 3
    house.engine.close()
    assert house.look() == 0


def test_a_large_log_is_compacted_at_once(house):
    house.after_seconds = 3600
    house.look()
    noise = random.Random(1)
    plane = house.engine.plane(house.accounts["beta"], "beta")
    while plane.stats().log_bytes < 4 << 20:
        text = noise.randbytes(100_000).hex()
        plane.write_json(encode_records([{**RECORD, "fields": {"text": text}}] * 4))
    del plane
    house.engine.close()
    assert house.look() == 1
    assert house.segments("beta")["beta"] > 0


def test_after_a_start_stores_with_rows_are_opened_a_few_at_a_look(house):
    for number in range(20):
        house.accounts[f"delta-{number}"] = house.tenants.create(f"delta-{number}").account_id
    house.after_seconds = 3600
    house.write()
    assert [house.look() for _ in range(3)] == [20, 3, 0]


def test_d15_a_store_written_to_under_a_wrong_clock_is_looked_at(house):
    house.after_seconds = 3600
    house.write()
    house.look()
    house.engine.close()
    folder = house.engine.folder(house.accounts["beta"])
    body = encode_records([RECORD])
    ahead_ns = int(house.now + 7_200) * 1_000_000_000
    house.engine.plane(folder.name, "beta").write_json(body, now_ns=ahead_ns)
    os.utime(folder / "plane.mdb", ns=(ahead_ns, ahead_ns))  # as that clock does
    assert house.look() == 1
    lead = house.shown("fleetcast_tenant_clock_lead_seconds", "beta")
    assert 7_100 < lead <= 7_200
    house.now += 60
    assert house.look() == 1
    assert house.shown("fleetcast_tenant_clock_lead_seconds", "beta") == lead - 60


YEAR_SECONDS = 365 * 86_400


def test_o5_a_log_is_compacted_by_age_after_the_clock_was_ahead(house):
    """It waited for as long as the clock had been ahead."""
    house.after_seconds = 60
    house.ahead = YEAR_SECONDS
    house.look()
    house.write(now_ns=int(house.now + house.ahead) * 10**9)
    assert house.look() == 0
    house.ahead = 0
    house.now += 60
    house.look()
    assert house.segments("alpha", "beta", "gamma") == {"alpha": 1, "beta": 1, "gamma": 1}


def test_o5_upkeep_that_failed_is_tried_again_after_the_clock_was_ahead(house):
    house.write()
    house.engine.failure = MemoryError()
    house.engine.failing = frozenset({house.accounts["alpha"]})
    house.ahead = YEAR_SECONDS
    house.look()
    house.ahead = 0
    house.engine.failing = frozenset()
    house.now += 1
    house.look()
    assert house.segments("alpha") == {"alpha": 1}


def test_o5_a_lead_is_logged_and_measured_after_the_clock_was_ahead(house):
    """D15's line and metric stopped for as long as the clock had been ahead."""
    house.after_seconds = 3600
    house.look()
    house.ahead = YEAR_SECONDS
    ahead_ns = int(house.now + house.ahead + 7_200) * 10**9
    house.write(now_ns=ahead_ns)
    for account_id in house.accounts.values():
        plane = house.engine.folder(account_id) / "plane.mdb"
        os.utime(plane, ns=(ahead_ns, ahead_ns))  # as that clock does
    house.look()
    lead = house.shown("fleetcast_tenant_clock_lead_seconds", "beta")
    assert lead == 7_200
    house.ahead = 0
    house.now += 60
    house.look()
    lead = house.shown("fleetcast_tenant_clock_lead_seconds", "beta")
    assert lead == YEAR_SECONDS + 7_140


def test_o2_a_clock_that_jumped_removes_nothing_and_the_metric_says_so(house):
    """One look under a clock 1,024 weeks ahead removed all that a retention would ever remove."""
    recent = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    house.tenants.change("beta", retention_seconds=86_400)
    house.write({**RECORD, "time": recent})
    house.look()
    held = ("fleetcast_tenant_expiry_held", "beta")
    house.ahead = 1_024 * 7 * 86_400
    house.look()
    assert (house.segments("beta"), house.shown(*held)) == ({"beta": 1}, 1)
    house.ahead = 0
    house.look()
    assert (house.segments("beta"), house.shown(*held)) == ({"beta": 1}, 0)


@pytest.fixture
def held(house):
    """A reader of the metric of beta, of whom a doubtful clock holds rows."""
    recent = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    house.tenants.change("beta", retention_seconds=86_400)
    house.write({**RECORD, "time": recent})
    house.look()
    house.ahead = 1_024 * 7 * 86_400
    house.look()

    def held():
        return house.shown("fleetcast_tenant_expiry_held", "beta")

    assert held() == 1
    return held


def test_o2_what_another_process_compacts_is_held_as_before(house, held):
    """The log said "expiry goes on", and the metric was 0, though nothing had changed."""
    house.write()
    lock = house.engine.folder(house.accounts["beta"]) / "compaction.lock"
    with lock.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert house.look() > 0
        assert held() == 1
    house.look()
    assert held() == 1


def test_a_deleted_tenant_holds_and_fails_no_more(house, held):
    """Its metrics stayed as they were, and kept the alerts on them firing."""
    house.engine.failure = MemoryError()
    house.engine.failing = frozenset({house.accounts["beta"]})
    house.write()
    house.look()
    assert (held(), house.shown("fleetcast_upkeep_failing", "beta")) == (1, 1)
    with house.tenants.deleting("beta") as tenant:
        house.engine.destroy_plane(tenant.account_id)
    house.look()
    names = ("tenant_expiry_held", "upkeep_failing", "upkeep_failing_since_time_seconds")
    assert [house.shown(f"fleetcast_{name}", "beta") for name in names] == [0, 0, 0]


def test_a_clock_that_is_set_has_every_store_looked_at(house):
    """Days that end in a year by a clock that was behind may be over now."""
    house.ahead = -YEAR_SECONDS
    house.write()
    assert [house.look() for _ in range(3)] == [3, 3, 0]  # their files have times of that write
    house.ahead = 0
    assert [house.look(), house.look()] == [3, 0]


def test_a_retention_that_is_extended_meanwhile_expires_nothing(house):
    """The old one was set back from a list read before, and rows removed."""
    long_ago = (datetime.now(UTC) - timedelta(days=3)).isoformat()
    house.write({**RECORD, "time": long_ago})
    house.look()
    assert house.segments("beta") == {"beta": 1}
    house.tenants.change("beta", retention_seconds=86_400)

    def extend(account_id):
        if account_id == house.accounts["beta"]:
            house.engine.before_opening = lambda _account_id: None
            house.tenants.change("beta", retention_seconds=None)

    house.engine.before_opening = extend
    house.look()
    for _ in range(3):
        house.look()
    assert house.segments("beta") == {"beta": 1}
    plane = house.engine.plane(house.accounts["beta"], "beta")
    assert plane.upcoming().retention_seconds is None
    house.tenants.change("beta", retention_seconds=86_400)
    house.look()
    assert house.segments("beta") == {"beta": 0}


def test_a_restored_store_gets_its_tenants_retention(house):
    house.tenants.change("beta", retention_seconds=86_400)
    house.engine.plane(house.accounts["beta"], "beta").set_retention(None)
    house.write()
    house.look()
    plane = house.engine.plane(house.accounts["beta"], "beta")
    assert plane.upcoming().retention_seconds == 86_400


def test_days_of_the_past_are_finished_when_nothing_of_them_comes_any_more(house):
    """A store at rest is opened at the instant that it named, finished, and left alone again."""
    house.after_seconds = 60
    # More than a round writes again with its own rows.
    fields = {f"f{number}": 1.0 for number in range(2_000)}
    for hour in range(2):
        times = (f"2026-01-01T0{hour}:00:{second}Z" for second in range(10, 43))  # long over
        records = [{**RECORD, "time": time, "fields": fields} for time in times]
        house.write(*records, now_ns=int(house.now) * 10**9)
        house.look()
        house.now += 60
        assert house.look() == 3
    assert house.segments("alpha", "beta") == {"alpha": 2, "beta": 2}
    house.engine.close()
    looks = []
    for _ in range(300):
        house.now += 1
        looks.append(house.look())
    assert 1 <= looks.count(3) <= 2  # when the rows of the first segment rest, and of both
    assert looks.count(0) == 300 - looks.count(3)
    assert house.segments("alpha", "beta") == {"alpha": 1, "beta": 1}
