from contextlib import closing

import pytest

from fleetcast.accounts import ControlStore, Usage
from fleetcast.engine import Records


class Counted:
    def __init__(self, counts):
        self._counts = counts

    def of(self, account_id):
        return self._counts.get(account_id, 0)

    def all(self):
        return dict(self._counts)


@pytest.fixture
def usage(control):
    """Makes the usage of a run that has counted what a dictionary says."""

    def usage(counted, run):
        return Usage(control, Counted(counted), run)

    return usage


@pytest.fixture
def control(tmp_path):
    store = ControlStore.create(tmp_path / "control", b"k" * 32)
    yield store
    store.close()


def test_requests_add_up_over_runs(usage):  # J6
    counted = {"a": 3}
    first = usage(counted, "r1")
    assert first.requests_total("a") == 3
    first.flush()
    counted["a"] = 5
    assert usage(counted, "r1").requests_total("a") == 5  # another process of the same run
    first.flush()
    first.flush()
    second = usage({"a": 2, "b": 1}, "r2")
    assert second.requests_total("a") == 7
    assert usage({}, "r3").requests_total("a") == 5  # r2 ended before it could flush
    second.flush()
    assert [usage({}, "r3").requests_total(name) for name in "abc"] == [7, 1, 0]


def test_a_store_made_before_there_was_usage(tmp_path):
    Records.create(tmp_path / "old", "fleetcast control 1", ["tenants", "keys"], b"k" * 32)
    with closing(ControlStore.embedded(tmp_path / "old", b"k" * 32)) as store:
        Usage(store, Counted({"a": 1}), "r1").flush()
        assert Usage(store, Counted({}), "r2").requests_total("a") == 1
