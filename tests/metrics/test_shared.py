"""Counters in shared memory: what a process counted stays counted, however it ended."""

import os
import signal
import subprocess
import sys

import pytest

from fleetcast.engine import Plane, encode_records
from fleetcast.log_lines import Served
from fleetcast.metrics import (
    KEYED_REST,
    REFUSED,
    AccountRequests,
    Counters,
    Shared,
    Totals,
    Writes,
    exposition,
    label,
    make_shared_memory,
)
from fleetcast.metrics.shared import KEYED_MAX, ROW_SLOTS
from fleetcast.surface.accounting import Accounting

CHILD = """
import sys
from fleetcast.metrics import Counters, Shared
counters = Counters(Shared(int(sys.argv[1])))
counters.add(counters.counter("made_total"), 3)
counters.add(counters.gauge("held"), 1)
print(*counters.shared.own, flush=True)
sys.stdin.read()
"""


def served(status, error=None, tenant=None, key_id=None):
    return Served(
        "id", "POST", "/telemetry", status, error, tenant, key_id, "::1", 0.001, 0, 0, "http"
    )


class Child:
    def __init__(self, descriptor):
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(descriptor)],
            pass_fds=[descriptor],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.row = int(self.process.stdout.readline())

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.communicate()


@pytest.fixture
def descriptor():
    created = make_shared_memory(rows=4)
    yield created
    os.close(created)


def test_counters_outlive_a_kill_and_gauges_do_not(descriptor):
    totals = Totals(Shared(descriptor))
    children = [Child(descriptor), Child(descriptor)]
    assert dict(totals.all()) == {"made_total": 6, "held": 2}
    children[0].end()
    assert dict(totals.all()) == {"made_total": 6, "held": 1}
    children[1].end(signal.SIGTERM)
    assert dict(totals.all()) == {"made_total": 6}


def test_who_comes_next_goes_on_where_the_dead_ended(descriptor):
    totals = Totals(Shared(descriptor))
    seen = []
    for _ in range(6):  # more than there are rows
        child = Child(descriptor)
        assert child.row == 0
        seen.append(totals.of("made_total"))
        assert totals.of("held") == 1
        child.end()
    assert seen == [3, 6, 9, 12, 15, 18]


def test_a_half_written_name_is_not_there(descriptor):
    """As a kill between the name and its length leaves it."""
    child = Child(descriptor)
    child.end()
    shared = Shared(descriptor)
    shared.memory[2 * 256 + 16 : 2 * 256 + 20] = b"half"
    totals = Totals(shared)
    assert dict(totals.all()) == {"made_total": 3}
    counters = Counters(shared)
    counters.add(counters.counter("other_total"))
    assert dict(totals.all()) == {"made_total": 3, "held": 0, "other_total": 1}


def test_what_finds_no_room_in_any_row_is_counted_as_lost():
    counters = Counters.alone()
    first = counters.counter("first_total")
    for number in range(ROW_SLOTS + 2):
        counters.add(counters.counter(f"n{number}"))
    counters.add(first, 7)
    totals = Totals(counters.shared)
    assert totals.of("first_total") == 7
    assert totals.of("n0") == 1
    assert len(totals.all()) == ROW_SLOTS - 1
    assert totals.of("fleetcast_series_lost_total") == 5


def test_refusals_of_more_keys_than_there_is_room_for_count_together(descriptor):
    """Also in the next process, which takes over the names of the process before."""
    for _ in range(2):
        memory = os.dup(descriptor)  # closing it releases the rows, as the end of a process does
        surface = Accounting("http", Counters(Shared(memory)))
        for number in range(KEYED_MAX + 5):
            surface.count(served(403, "insufficient_scope", "t", f"k{number}"), "a")
        os.close(memory)
    totals = Totals(Shared(descriptor)).all()
    keyed = {name: count for name, count in totals.items() if name.startswith(REFUSED)}
    assert keyed == {f"{REFUSED}http insufficient_scope t k{n}": 2 for n in range(KEYED_MAX)}
    assert totals[KEYED_REST] == 10
    family = label("fleetcast_tenant_refused_total", tenant="t", code="insufficient_scope")
    assert totals[family] == 2 * (KEYED_MAX + 5)


def test_a_process_with_more_names_than_a_row_takes_another(descriptor):
    """Usage stood still beyond 4,086 tenants, four names each, a process."""
    tenants = 4_100
    counters, shared = Counters(Shared(descriptor)), Shared(descriptor)
    reader = Totals(shared)
    surface, writes = Accounting("http", counters), Writes(counters, "http")
    records = [{"measurement": "link", "time": "2026-01-01", "fields": {"x": 1}}] * 3
    result = Plane.in_memory("acme").write_json(encode_records(records))
    for number in range(tenants):
        for _ in range(2):
            surface.begin()
            surface.end(served(202), f"a{number}")
        writes.stored(f"t{number}", result)
    requests = AccountRequests(shared)
    assert requests.all() == {f"a{number}": 2 for number in range(tenants)}
    assert requests.of(f"a{tenants - 1}") == 2
    assert requests.of("nobody") == 0
    name = label("fleetcast_records_accepted_total", tenant=f"t{tenants - 1}", transport="http")
    assert reader.of(name) == 3
    child = Child(descriptor)  # finds a row of its own behind those two
    assert child.row == 2
    assert reader.of("made_total") == 3
    child.end()
    assert reader.all()[name] == 3


def test_a_reader_sees_names_and_rows_that_come_later(descriptor):
    reader = Totals(Shared(descriptor))
    assert reader.all() == {}
    counters = Counters(Shared(descriptor))
    for number in range(3):
        counters.add(counters.counter(f"n{number}"), number + 1)
        assert reader.of(f"n{number}") == number + 1
    child = Child(descriptor)
    assert reader.all() == {"n0": 1, "n1": 2, "n2": 3, "made_total": 3, "held": 1}
    child.end()
    assert reader.all() == {"n0": 1, "n1": 2, "n2": 3, "made_total": 3}


def test_label_values_are_escaped():
    assert label("a", b='x"\\\n') == 'a{b="x\\"\\\\\\n"}'


def test_text_for_prometheus():
    values = {
        "fleetcast_http_connections": 2,
        'fleetcast_records_accepted_total{tenant="b"}': 1,
        'fleetcast_records_accepted_total{tenant="a"}': 5,
        'fleetcast_commit_seconds_bucket{le="0.001"}': 2,
        'fleetcast_commit_seconds_bucket{le="+Inf"}': 1,
        "fleetcast_commit_seconds_sum": 2_500_000_000,
        "usage a1": 9,
    }
    lines = exposition(values).splitlines()
    assert "# TYPE fleetcast_http_connections gauge" in lines
    at = lines.index("# TYPE fleetcast_records_accepted_total counter")
    assert lines[at + 1 : at + 3] == [
        'fleetcast_records_accepted_total{tenant="a"} 5',
        'fleetcast_records_accepted_total{tenant="b"} 1',
    ]
    assert 'fleetcast_commit_seconds_bucket{le="0.0005"} 0' in lines
    assert 'fleetcast_commit_seconds_bucket{le="30"} 2' in lines
    assert 'fleetcast_commit_seconds_bucket{le="+Inf"} 3' in lines
    assert "fleetcast_commit_seconds_sum 2.5" in lines
    assert "fleetcast_commit_seconds_count 3" in lines
    assert "usage" not in exposition(values)
