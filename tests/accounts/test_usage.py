from contextlib import closing

import pytest

from fleetcast.accounts import ControlStore, Usage, UsageSpan
from fleetcast.accounts.records import UsageRecord
from fleetcast.engine import Records
from fleetcast.record_store import DATA_FILE


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


def test_a_span_of_usage_ends_with_any_other_change(control, tmp_path):
    """Nothing but usage was written between the first and the last state that are said."""
    counted = {"a": 0}
    folder = tmp_path / "control"
    usage = Usage(control, Counted(counted), "r1", UsageSpan(folder / DATA_FILE))

    def said():
        counted["a"] += 1
        usage.flush()
        words = [*map(int, (folder / "usage.span").read_text().split())]
        assert words[4:] == state()
        return words[0], words[4]

    def state():
        stat = (folder / DATA_FILE).stat()
        return [last(), stat.st_size, *divmod(stat.st_ctime_ns, 1_000_000_000)]

    def last():
        with control.read() as tables:
            return tables.transaction_id

    before = last()
    assert said() == (before, before + 1)
    assert said() == (before, before + 2)
    assert (folder / "usage.span").stat().st_mode & 0o777 == 0o600
    with control.write() as tables:
        tables.delete_tenant("other")
        tables.put_usage("b", UsageRecord(requests=1, run="", counted=0))
    assert said() == (before + 3, before + 4)
    (folder / DATA_FILE).touch()  # the file is not as it was left
    assert said() == (before + 4, before + 5)
