"""The contract's retry table and the batching, on a transport that does as it is told."""

from __future__ import annotations

import queue
import threading

import pytest

from fleetcast.client import GatewayWriter, Options, SpoolFull
from fleetcast.client.records import decode_records
from fleetcast.client.transport import Outcome, Verdict

WAIT = 60


class Script:
    """Answers with the outcomes it is given; one at a time where `step` is set."""

    def __init__(self, *outcomes, step=False):
        self.outcomes = queue.SimpleQueue()
        for outcome in outcomes:
            self.outcomes.put(outcome)
        self.sent = []
        self.step = step
        self.arrived = threading.Semaphore(0)

    def send(self, request):
        self.sent.append([record["time"] for record in decode_records(request)])
        self.arrived.release()
        try:
            outcome = self.outcomes.get(timeout=WAIT if self.step else 0)
        except queue.Empty:
            outcome = Outcome(Verdict.WRITTEN)
        if outcome.verdict is Verdict.WRITTEN:
            return Outcome(Verdict.WRITTEN, accepted_count=len(self.sent[-1]))
        return outcome

    def close(self):
        self.outcomes.put(Outcome(Verdict.UNCERTAIN, "CANCELLED"))


AGAIN = Outcome(Verdict.AGAIN, "RESOURCE_EXHAUSTED", "ingest_buffer_full", retry_seconds=0.0)
UNCERTAIN = Outcome(Verdict.UNCERTAIN, "UNAVAILABLE", "Socket closed")
SPLIT = Outcome(Verdict.SPLIT, "RESOURCE_EXHAUSTED", "batch_too_large")
REFUSED = Outcome(Verdict.REFUSED, "INVALID_ARGUMENT", "invalid_input:tags")
WRITTEN = Outcome(Verdict.WRITTEN)


def record(time):
    return {"measurement": "link", "time": time, "tags": {"entity_id": "a"}, "fields": {"n": 1}}


@pytest.fixture(autouse=True)
def _no_backoff(monkeypatch):
    monkeypatch.setattr("fleetcast.client.gateway._BACKOFF_FIRST_SECONDS", 0.0)


@pytest.fixture
def open_writer():
    opened = []

    def open_writer(script, refused=None, spool=None, **options):
        options = {"records_max": 2, "age_seconds": 3600.0, **options}
        handed_back = [] if refused is None else refused
        writer = GatewayWriter(
            "",
            "",
            on_refused=handed_back.append,
            spool=spool,
            options=Options(**options),
            transport=script,
        )
        opened.append(writer)
        return writer

    yield open_writer
    for writer in opened:
        writer.close(0.0)


def write(writer, *times):
    for time in times:
        writer.write(record(time))


def test_batches_by_count_and_in_order(open_writer):
    script = Script()
    writer = open_writer(script)
    write(writer, 1, 2, 3, 4, 5)
    assert writer.flush(WAIT)
    assert script.sent == [[1, 2], [3, 4], [5]]
    assert writer.tally.accepted == 5


def test_batches_by_bytes(open_writer):
    script = Script()
    writer = open_writer(script, records_max=100, bytes_max=100)
    write(writer, 1, 2, 3, 4, 5)
    assert writer.flush(WAIT)
    assert [time for batch in script.sent for time in batch] == [1, 2, 3, 4, 5]
    assert max(map(len, script.sent)) == 2


def test_batches_by_age(open_writer):
    script = Script()
    write(open_writer(script, age_seconds=0.0), 1)
    assert script.arrived.acquire(timeout=WAIT)  # nobody flushes


@pytest.mark.parametrize("outcome", [AGAIN, UNCERTAIN])
def test_the_same_is_sent_again(open_writer, outcome):
    script = Script(outcome, outcome)
    writer = open_writer(script)
    write(writer, 1, 2, 3)
    assert writer.flush(WAIT)
    assert script.sent == [[1, 2], [1, 2], [1, 2], [3]]
    assert (writer.tally.accepted, writer.tally.resent_batches) == (3, 2)


def test_too_large_a_batch_is_split_until_it_fits(open_writer):
    refused = []
    script = Script(SPLIT, WRITTEN, SPLIT, WRITTEN, SPLIT)
    writer = open_writer(script, refused, records_max=4)
    write(writer, 1, 2, 3, 4)
    assert writer.flush(WAIT)
    assert script.sent == [[1, 2, 3, 4], [1, 2], [3, 4], [3], [4]]
    assert [batch.details for batch in refused] == ["batch_too_large"]
    assert [each["time"] for each in refused[0].records] == [4]


def test_what_is_refused_is_handed_back_and_the_rest_goes_on(open_writer):
    refused = []
    writer = open_writer(Script(REFUSED, WRITTEN), refused)
    write(writer, 1, 2, 3)
    assert writer.flush(WAIT)
    (batch,) = refused
    assert (batch.status, batch.details) == ("INVALID_ARGUMENT", "invalid_input:tags")
    assert batch.records == [{**record(time)} for time in (1, 2)]
    assert not batch.uncertain
    assert (writer.tally.accepted, writer.tally.refused) == (1, 2)


def test_what_may_have_been_stored_can_be_handed_back(open_writer):
    refused = []
    writer = open_writer(Script(UNCERTAIN), refused, resend_uncertain=False)
    write(writer, 1)
    assert writer.flush(WAIT)
    assert [batch.uncertain for batch in refused] == [True]


def test_a_caller_that_fails_does_not_stop_the_writer(open_writer):
    script = Script(REFUSED)
    writer = open_writer(script)
    writer._on_refused = None  # calling it raises
    write(writer, 1, 2, 3)
    assert writer.flush(WAIT)
    assert script.sent == [[1, 2], [3]]


def test_a_full_spool_says_so_and_takes_nothing(open_writer):
    script = Script(step=True)
    writer = open_writer(script, records_max=1, memory_bytes_max=1)
    with pytest.raises(SpoolFull):
        write(writer, *range(10))
    script.step = False
    script.outcomes.put(WRITTEN)
    assert writer.flush(WAIT)
    sent = [time for batch in script.sent for time in batch]
    assert sent == list(range(len(sent)))
    assert sent


def test_what_was_not_sent_is_sent_by_the_next_writer(open_writer, tmp_path):
    away = Script(step=True)
    writer = open_writer(away, spool=tmp_path, memory_bytes_max=60)
    write(writer, *range(9))
    assert writer.close(0.0) == 0
    script = Script()
    writer = open_writer(script, spool=tmp_path)
    write(writer, 9)
    assert writer.flush(WAIT)
    assert [time for batch in script.sent for time in batch] == list(range(10))
    assert list(tmp_path.iterdir()) == []


def test_a_closed_writer_takes_nothing(open_writer):
    writer = open_writer(Script())
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        write(writer, 1)
